// SPDX-License-Identifier: Apache-2.0
/** The cases of the tunnel's device on this machine's kernel. Layer: test. */
import { expect, test } from 'vitest'
import { kernelFacts } from '../kernel-facts.ts'
import { packetRunner, setUpNamespace } from '../../../testkit/packets/runner.ts'
import { tunnelDeviceCases } from './tunnel-device-cases.ts'

test('the device that announces the tunnel’s port', { timeout: 60_000 }, async () => {
  setUpNamespace()
  const seen = new Map<string, string | undefined>()
  const { features, missingHelpers } = kernelFacts()
  const runner = await packetRunner(features, missingHelpers)
  await tunnelDeviceCases(runner, (name, wrong) => seen.set(name, wrong))
  runner.close()
  expect([...seen].filter(([, wrong]) => wrong !== undefined)).toEqual([])
  expect(seen.size).toBe(8)
})
