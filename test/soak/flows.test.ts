// SPDX-License-Identifier: Apache-2.0
/** Which traffic counts as lost. */
import { describe, expect, test } from 'vitest'
import type { RequestsResult, StreamResult } from '../../lab/tools/results.ts'
import { LOAD, lossesIn, refusalsIn, slowestText, WAYS } from '../../soak/flows.ts'

const WHOLE: StreamResult = {
  stream: '',
  sent: 100,
  received: 100,
  lost: 0,
  duplicates: 0,
  outOfOrder: 0,
  reconnects: 0,
  errors: {},
  longestGapMs: 50,
  longestGapAt: 1,
  firstLostAt: null,
  slowestMs: 1,
  pods: { p: 100 },
  peers: ['c:1'],
}

/** All streams whole, but for those of one kind, which are like this. */
const streams = (kind: string, change: Partial<StreamResult>): StreamResult[] =>
  WAYS.map((way) => (way.kind === kind ? { ...WHOLE, ...change } : WHOLE))
const count = (kind: string): number => WAYS.filter((way) => way.kind === kind).length

test('streams are started in the order in which they are judged', () => {
  expect(LOAD.flows.flatMap(({ from, to }) => to.map((one) => ({ from, to: one })))).toEqual(WAYS.map(({ from, to }) => ({ from, to })))
})

describe('of a stream', () => {
  test('that is whole, nothing', () => {
    expect(
      lossesIn(
        WAYS.map(() => WHOLE),
        WAYS,
      ),
    ).toEqual([])
  })

  test.each([{ lost: 1, firstLostAt: 77 }, { reconnects: 1 }, { errors: { ECONNRESET: 1 } }, { sent: 0 }])('%j', (change) => {
    for (const kind of ['keeps', 'control']) expect(lossesIn(streams(kind, change), WAYS)).toHaveLength(count(kind))
    expect(lossesIn(streams('keeps', change), WAYS)[0]?.at).toBe('firstLostAt' in change ? 77 : undefined)
  })

  test('that moves, silence and nothing else', () => {
    expect(lossesIn(streams('moves', { lost: 20, errors: { ECONNREFUSED: 3 }, longestGapMs: 1040 }), WAYS)).toEqual([])
    expect(lossesIn(streams('moves', { longestGapMs: 1051 }), WAYS)).toHaveLength(count('moves'))
    expect(lossesIn(streams('moves', { received: 0 }), WAYS)).toHaveLength(count('moves'))
  })

  test('that is not there', () => {
    expect(lossesIn([], WAYS)).toHaveLength(WAYS.length)
  })
})

test('the slowest answers are reported apart from those of the control', () => {
  const slow = streams('keeps', { slowestMs: 300 })
  expect(slowestText(slow, WAYS)).toBe('slowest answer 300 ms, of the control 1')
})

test('each new connection that was not answered is a fault', () => {
  const whole: RequestsResult = {
    event: 'result',
    ok: 5,
    refused: 0,
    reset: 0,
    timeouts: 0,
    errors: {},
    pods: {},
    since: {},
    firstFailedAt: null,
    lastFailedAt: null,
    latencyMs: null,
    answers: [],
  }
  const all = (change: Partial<RequestsResult>): unknown[] =>
    refusalsIn(
      LOAD.requests.map((_, at) => (at === 0 ? { ...whole, ...change } : whole)),
      LOAD,
    )
  expect(all({})).toEqual([])
  for (const change of [{ ok: 0 }, { refused: 1 }, { reset: 1 }, { timeouts: 1 }, { errors: { EHOSTUNREACH: 1 } }])
    expect(all(change)).toHaveLength(1)
})
