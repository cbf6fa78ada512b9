// SPDX-License-Identifier: Apache-2.0
/** Counting of numbered messages. */
import { expect, test } from 'vitest'
import { StreamStats } from '../../../lab/tools/stream-stats.ts'

const answer = (seq: number, pod = 'p'): { pod: string; peer: string; local: string; bytes: number; seq: number } => ({
  pod,
  peer: 'c:1',
  local: 's:1',
  bytes: 1,
  seq,
})

test('a stream counts what is lost, late or twice, and has the longest silence', () => {
  const tally = new StreamStats('udp:x')
  for (const now of [0, 10, 20, 30, 40]) tally.send(now)
  tally.answer(answer(0), 5)
  tally.answer(answer(2), 25)
  tally.answer(answer(1, 'q'), 28)
  tally.answer(answer(2), 29)
  tally.answer(answer(4), 99)
  tally.error('ECONNREFUSED')
  tally.silence(120)
  expect(tally.result()).toEqual({
    stream: 'udp:x',
    sent: 5,
    received: 4,
    lost: 1,
    duplicates: 1,
    outOfOrder: 1,
    reconnects: 0,
    errors: { ECONNREFUSED: 1 },
    longestGapMs: 71,
    longestGapAt: 28,
    firstLostAt: 30,
    slowestMs: 59,
    pods: { p: 3, q: 1 },
    peers: ['c:1'],
  })
})

test('a stream may be nothing but silence', () => {
  const tally = new StreamStats('tcp:x')
  tally.connection()
  tally.connection()
  tally.send(100)
  tally.silence(400)
  expect(tally.result()).toMatchObject({ sent: 1, received: 0, lost: 1, reconnects: 1, longestGapMs: 300 })
})
