// SPDX-License-Identifier: Apache-2.0
/** A new pod's address while the prefix around it moves. Layer: test. */
import { expect, test } from 'vitest'
import { planTransition, type Change, type Move, type RulesetView } from '#agent/compile/policy/transition/plan.ts'
import { atOnce } from '#lib/base/async/slices.ts'
import { depthOf, parseAddr, parseCidr, prefixKey } from '#lib/base/ip.ts'

const ADDR = parseAddr('10.0.0.1')
const AROUND = parseCidr('10.0.0.0/24')
const OWN = prefixKey(ADDR, 128)
const move = (was: number, now: number): Move => ({ was: { id: was }, now: { id: now }, isGone: false })
const NOTHING_DIFFERS: RulesetView<Move> = { tellsApart: () => false, tellsOwnApart: () => false, between: () => 0, twinOf: (set) => set }

function changeWith(written: Change<Move>['written']): Change<Move> {
  return {
    moves: {
      ends: new Map([[ADDR, move(1, 3)]]),
      nets: new Map([[prefixKey(AROUND.addr, depthOf(AROUND)), { ...move(1, 2), cidr: AROUND }]]),
    },
    ends: [{ addr: ADDR, before: undefined, after: ['0000000000000007'] }],
    hosts: [],
    written,
  }
}

test.each<readonly [string, Change<Move>['written'], number | undefined]>([
  ['keeps its old identity', { isEmpty: false, freeNets: 2, hasNet: () => false }, 1],
  ['takes no place that the prefixes need', { isEmpty: false, freeNets: 1, hasNet: () => false }, undefined],
  ['needs nothing when its own prefix stays', { isEmpty: false, freeNets: 2, hasNet: (key) => key === OWN }, undefined],
  ['needs nothing when nothing judges yet', { isEmpty: true, freeNets: 2, hasNet: () => false }, undefined],
])('a new pod’s address %s', (_, written, identity) => {
  const { first, rest } = atOnce(planTransition(changeWith(written), NOTHING_DIFFERS))
  expect(first.nets.get(OWN)?.identity).toBe(identity)
  // and then the row goes
  expect([rest.nets.has(OWN), rest.nets.get(OWN)?.identity]).toEqual([identity !== undefined, undefined])
})
