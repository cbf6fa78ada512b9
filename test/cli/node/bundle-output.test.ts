// SPDX-License-Identifier: Apache-2.0
/** A bundle on standard output. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lcg } from '../../support/lcg.ts'
import { programCommand } from '../../../testkit/base/program.ts'

test('a reader that is slower than the bundle gets all of it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-bundle-'))
  try {
    const random = lcg(1)
    // more than a pipe holds, after it was packed as well
    writeFileSync(
      join(folder, 'log'),
      Buffer.from(Array.from({ length: 300_000 }, () => random(256)))
        .toString('base64')
        .replaceAll(/.{100}/g, '$&\n'),
    )
    const command = [...programCommand('cli'), 'node', 'bundle', '--output', '-', '--log', join(folder, 'log')]
    const script = '"$@" | { sleep 1; tar -tzf -; }'
    const names = execFileSync('bash', ['-o', 'pipefail', '-c', script, 'bash', ...command], { encoding: 'utf8', stdio: 'pipe' })
    expect(names).toContain('netplane-bundle/log/agent.txt\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
