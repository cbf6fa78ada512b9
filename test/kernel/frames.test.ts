// SPDX-License-Identifier: Apache-2.0
/** Random frames through the programs, against what must not arrive by the rules alone. Layer: test.
 *
 * FRAMES=n: so many; SEED=s: the same again. `make soak` sends a million. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { play } from './frames/play.ts'
import { HELPERS, packetRunner, setUpNamespace } from '../../testkit/packets/runner.ts'
import type { Features, PacketRunner } from '../../testkit/packets/runner.ts'
import { SEED } from '../support/steady/seed.ts'

const FRAMES = Number(process.env['FRAMES'] ?? 10_000)
const NEWEST: Features = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const OLDEST: Features = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }

beforeAll(() => setUpNamespace())

const opened: PacketRunner[] = []
afterAll(() => opened.forEach((runner) => runner.close()))

test.each([
  ['with every helper', { features: NEWEST, stubs: [], quarters: 3 }],
  ['with the helpers of the oldest kernel only', { features: OLDEST, stubs: Object.values(HELPERS), quarters: 1 }],
] as const)(
  'of random frames none arrives that must not, and plain ones do, %s',
  { timeout: 60_000 + FRAMES * 10 },
  async (_title, { features, stubs, quarters }) => {
    const runner = await packetRunner(features, stubs)
    opened.push(runner)
    const { fault, count } = await play(runner, { seed: SEED, frames: (FRAMES * quarters) / 4 })
    expect(fault).toBeUndefined()
    // else it would have nothing to say
    expect(count.arrived).toBeGreaterThan(count.frames / 10)
    expect(count.plain).toBeGreaterThan(count.frames / 1000)
  },
)
