// SPDX-License-Identifier: Apache-2.0
/** Every packet case through the programs as this kernel runs them, and once more as the oldest supported would. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Features, PacketRunner } from './packet-runner.ts'
import { HELPERS, packetRunner, setUpNamespace } from './packet-runner.ts'
import { casesFor } from './packets/all.ts'

const NEWEST: Features = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const OLDEST: Features = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }

beforeAll(() => setUpNamespace())

for (const [title, features, stubs] of [
  ['with every helper', NEWEST, []],
  ['with the helpers of the oldest kernel only', OLDEST, Object.values(HELPERS)],
] as const) {
  describe(title, () => {
    const opened: PacketRunner[] = []
    beforeAll(async () => {
      opened.push(await packetRunner(features, stubs))
    })
    afterAll(() => opened.forEach((runner) => runner.close()))

    test.each(casesFor(features).map((packetCase) => [packetCase.name, packetCase] as const))('%s', async (_name, packetCase) => {
      for (const runner of opened) expect(await runner.run(packetCase)).toBeUndefined()
    })
  })
}
