// SPDX-License-Identifier: Apache-2.0
/** What programs tell of flows, by a ring buffer and by perf buffers, as those of kernels before 5.8. Layer: test. */
import { beforeAll, expect, test } from 'vitest'
import { HELPERS, packetRunner, setUpNamespace } from '../../testkit/packets/runner.ts'
import { flowEventCases } from './flow-event-cases.ts'

const NEWEST = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const OLDEST = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }
const CASES = 10

beforeAll(() => setUpNamespace())

test.each([
  ['by a ring buffer', { features: NEWEST, stubs: [], ring_buffer: 1 }],
  ['by perf buffers', { features: NEWEST, stubs: [], ring_buffer: 0 }],
  ['by programs of the oldest kernel', { features: OLDEST, stubs: Object.values(HELPERS), ring_buffer: 0 }],
])('events of flows come whole, %s', async (_, { features, stubs, ring_buffer }) => {
  const outcomes: [string, string | undefined][] = []
  const runner = await packetRunner(features, stubs, { ring_buffer })
  await flowEventCases(runner, (name, wrong) => void outcomes.push([name, wrong]))
  runner.close()
  expect(outcomes.filter(([, wrong]) => wrong !== undefined)).toEqual([])
  expect(outcomes).toHaveLength(CASES)
})
