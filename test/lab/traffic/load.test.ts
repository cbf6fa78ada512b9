// SPDX-License-Identifier: Apache-2.0
/** What counts as a loss. */
import { expect, test } from 'vitest'
import { lossesOf } from '../../../lab/traffic/load.ts'
import type { RequestsResult } from '../../../lab/tools/results.ts'
import { StreamStats } from '../../../lab/tools/stream-stats.ts'

const requests: RequestsResult = {
  event: 'result',
  ok: 7,
  refused: 1,
  reset: 2,
  timeouts: 3,
  errors: { ENETUNREACH: 4, SHORT: 5 },
  pods: {},
  since: {},
  firstFailedAt: null,
  lastFailedAt: null,
  latencyMs: null,
  answers: [],
}

test('a new connection is refused by whatever it fails by', () => {
  expect(lossesOf({ streams: [], requests: [requests, requests] })).toEqual({ lost: 0, refused: 30 })
})

test('messages without an answer are lost, and so are connections that broke', () => {
  const tally = new StreamStats('tcp:10.0.0.1:80')
  for (let connection = 0; connection < 2; connection++) tally.connection()
  tally.send(0)
  expect(lossesOf({ streams: [tally.result()], requests: [] })).toEqual({ lost: 2, refused: 0 })
})
