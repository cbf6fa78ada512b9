// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NODE_FLAGS, packageRoot } from '#lib/base/os/package.ts'

test('the image starts the agent as we start our programs', () => {
  const script = readFileSync(join(packageRoot(), 'scripts/image/netplane-start'), 'utf8')
  expect(script).toContain(`node ${NODE_FLAGS.join(' ')} /`)
})
