// SPDX-License-Identifier: Apache-2.0
/** Counting of exchanges that each had a socket of their own. */
import { expect, test } from 'vitest'
import { RequestStats } from '../../../lab/tools/request-stats.ts'

const answer = (pod: string): { pod: string; peer: string; local: string; bytes: number } => ({ pod, peer: 'c:1', local: 's:1', bytes: 1 })

test('exchanges are counted by how they end, and the first and the last that failed are known', () => {
  const stats = new RequestStats()
  stats.answer(answer('p'), { start: 0, end: 5, complete: true })
  stats.answer(answer('q'), { start: 10, end: 40, complete: false })
  stats.answer(answer('p'), { start: 20, end: 30, complete: true })
  for (const [code, start] of [
    ['TIMEOUT', 70],
    ['ECONNREFUSED', 60],
    ['ECONNRESET', 90],
    ['ETIMEDOUT', 80],
    ['ENETUNREACH', 65],
  ] as const)
    stats.failure(code, start)
  expect(stats.result(1000)).toEqual({
    event: 'result',
    ok: 3,
    refused: 1,
    reset: 1,
    timeouts: 2,
    errors: { SHORT: 1, ENETUNREACH: 1 },
    pods: { p: 2, q: 1 },
    since: { p: 1005, q: 1040 },
    firstFailedAt: 1060,
    lastFailedAt: 1090,
    latencyMs: { p50: 10, p99: 30, max: 30 },
    answers: ['p', 'q', 'p'].map(answer),
  })
})

test('nothing sent is nothing failed', () => {
  expect(new RequestStats().result()).toMatchObject({ ok: 0, firstFailedAt: null, lastFailedAt: null, latencyMs: null, answers: [] })
})
