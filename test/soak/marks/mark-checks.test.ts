// SPDX-License-Identifier: Apache-2.0
/** Checks of marked flows when a soak is over. */
import { expect, test } from 'vitest'
import { markChecks } from '../../../soak/marks/mark-checks.ts'
import type { MarkedResult } from '../../../soak/marks/marked-traffic.ts'
import { ALL_TRUE, MARKED_FLOWS } from '../../../soak/marks/marked-flows.ts'

/** Each pair sent a hundred, one each 10 ms, of which those came through that should; with rules turned at the
 * fiftieth, if `turned`. */
function result(turned: boolean, openForMs = 0): MarkedResult {
  const closed = (truth: unknown): boolean => turned && truth === 'rules'
  const runs = MARKED_FLOWS.flatMap(({ id, truth }) => {
    if (truth === false) return []
    const [last, lastAt] = closed(truth) ? [49, 1490] : [99, 1990]
    const open = closed(truth) ? ([0, 49 + openForMs / 10, 1000, 1490 + openForMs] as const) : ([0, 99, 1000, 1990] as const)
    return [[id, [[0, last, 1000, lastAt] as const]] as const, [`${id}/0`, [open]] as const, [`${id}/1`, [open]] as const]
  })
  const sent = Object.fromEntries(MARKED_FLOWS.map(({ id }) => [id, 100]))
  const end = turned ? 4000 : 2000
  const knocks = [{ to: 'tcp:10.29.1.1:8082', tries: 7, through: 0, firstAt: null }]
  return { runs: Object.fromEntries(runs), sent, errors: {}, knocks, end }
}

const TURN = [{ at: 1495, truths: { ...ALL_TRUE, rules: false } }]
const faults = (of: MarkedResult, written = TURN.slice(0, 0)): number[] =>
  markChecks(of, { written, stepAt: () => 'step' }).map((check) => check.faults.length)

test('marked flows as they should be are no fault', () => {
  expect(faults(result(false))).toEqual([0, 0, 0])
})

test('a lost datagram that no version keeps out is a fault', () => {
  const { runs, ...rest } = result(false)
  const id = 'a-4>b-4:9001v4'
  const holed = {
    ...runs,
    [id]: [
      [0, 40, 1000, 1400],
      [42, 99, 1420, 1990],
    ] as const,
  }
  expect(faults({ ...rest, runs: holed })).toEqual([1, 0, 0])
})

test('a datagram that could not be sent is a fault, a negative probe that got through, and none that was tried', () => {
  const whole = result(false)
  expect(faults({ ...whole, errors: { EPERM: 2 } })).toEqual([1, 0, 0])
  expect(faults({ ...whole, knocks: [{ to: 'tcp:10.29.1.1:8082', tries: 7, through: 1, firstAt: 1500 }] })).toEqual([0, 0, 1])
  expect(faults({ ...whole, knocks: [] })).toEqual([0, 0, 1])
})

test('open flows that stay too long are a fault', () => {
  // streams whose truth stays end with the others, so that only those that were cut are silent in the end
  const cut = (openForMs: number): readonly number[] => {
    const { runs, ...rest } = result(true, openForMs)
    const lasting = Object.entries(runs).map(([id, [run]]) => {
      const [from = 0, to = 0, first = 0, last = 0] = run ?? []
      return [id, [[from, to, first, last === 1990 ? rest.end : last] as const]] as const
    })
    return faults({ ...rest, runs: Object.fromEntries(lasting) }, TURN)
  }
  expect(cut(200)).toEqual([0, 0, 0])
  expect(cut(300)).toEqual([0, 1, 0])
  // two families, two ports; and half of them took longer
  expect(cut(1600)).toEqual([0, 5, 0])
})
