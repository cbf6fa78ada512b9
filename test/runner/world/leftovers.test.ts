// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { foldersIn } from '../leftovers.ts'

test('only folders that runs have made are left over, and not the one of this run', () => {
  const place = mkdtempSync(join(tmpdir(), 'netplane-leftovers-'))
  try {
    for (const name of ['np', 'np.12', 'np.12.345', 'np.13.400', 'np.12.345.bak', 'np.a.b', 'xnp.1.2']) mkdirSync(join(place, name))
    writeFileSync(join(place, 'np.14.1'), '')
    symlinkSync('np', join(place, 'np.15.1'))
    expect(foldersIn(place, join(place, 'np.13.400'))).toEqual([join(place, 'np.12.345')])
  } finally {
    rmSync(place, { recursive: true })
  }
})
