// SPDX-License-Identifier: Apache-2.0
/** Random worlds, changed step by step: the tables say what the evaluator says. Layer: test. */
import { ruleOf } from '#lib/model/policy.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import type { Side } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { walk } from '#agent/policy/verdict.ts'
import { SURE_NOT } from '#lib/base/bpf-constants.ts'
import type { Profile } from '#lib/model/policy.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { NODE, object, owners, packet, plainPolicy, pod } from './arbitrary.ts'
import { Follower, Oracle } from './follower.ts'

/** RUNS=3000 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 40)
const TIMEOUT = Math.max(60_000, RUNS * 200)

const SIDES: readonly Side[] = (['ingress', 'egress'] as const).flatMap((direction) =>
  [false, true].map((staged) => ({ direction, staged })),
)

/** enum rule_action */
const ACTIONS = ['deny', 'allow', 'pass', 'open']

const step = fc.record({ put: fc.array(object, { minLength: 1, maxLength: 12 }), gone: fc.array(object, { maxLength: 6 }) })
const packets = fc.array(packet, { minLength: 10, maxLength: 40 })

test(
  'tables say what the evaluator says, by the same rule, after every step',
  () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 5 }), packets, (steps, some) => {
        const follower = new Follower(NODE)
        for (const { put, gone } of steps) {
          follower.put(put, gone)
          const oracle = new Oracle(follower)
          for (const one of some)
            for (const side of SIDES) expect([side, follower.verdict(one, side)]).toEqual([side, oracle.verdict(one, side)])
        }
      }),
      { numRuns: RUNS },
    )
  },
  TIMEOUT,
)

test('a namespace whose written profile allows everything asks no rule, like one without a profile', () => {
  const profile: Profile = {
    kind: 'Profile',
    namespace: '',
    name: 'kns.x',
    labels: new Map(),
    ingress: [ruleOf(0, {})],
    egress: [ruleOf(0, {})],
  }
  fc.assert(
    fc.property(fc.array(pod, { minLength: 1, maxLength: 5 }), packets, (pods, some) => {
      const follower = new Follower(NODE)
      follower.put([...pods, profile])
      const oracle = new Oracle(follower)
      for (const one of some)
        for (const side of SIDES) expect([side, follower.verdict(one, side)]).toEqual([side, oracle.verdict(one, side)])
    }),
    { numRuns: 20 },
  )
})

test.each([
  ['of rules that ask one thing as well', fc.array(object, { minLength: 5, maxLength: 10 })],
  ['of rules that ask one thing of addresses with several owners', owners],
])(
  '%s',
  (_, some: fc.Arbitrary<readonly KubeObject[]>) => {
    fc.assert(
      fc.property(some, fc.array(plainPolicy, { minLength: 10, maxLength: 10 }), packets, (objects, policies, asked) => {
        const follower = new Follower(NODE)
        follower.put(objects.filter(({ kind }) => !kind.endsWith('Policy')))
        for (const policy of policies) {
          follower.put([policy])
          const oracle = new Oracle(follower)
          for (const one of asked)
            for (const side of SIDES) expect([side, follower.verdict(one, side)]).toEqual([side, oracle.verdict(one, side)])
        }
      }),
      { numRuns: RUNS },
    )
  },
  TIMEOUT,
)

test(
  'at host endpoints as well: untracked, early, of what passes through, of the host itself',
  () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), packets, (steps, some) => {
        const follower = new Follower(NODE)
        for (const { put, gone } of steps) {
          follower.put(put, gone)
          const oracle = new Oracle(follower)
          const { hostEndpoints } = follower.store.snapshot
          for (const endpoint of hostEndpoints.values())
            if (endpoint.node === NODE)
              for (const [at, packet] of some.entries())
                for (const side of SIDES) {
                  const before = at % 2 === 0 ? packet : { ...packet, dport: 80 }
                  const passing = { ...side, packet, before, ofHost: at % 3 === 0 }
                  expect([passing, follower.hostActions(endpoint, passing)]).toEqual([passing, oracle.hostActions(endpoint, passing)])
                }
        }
      }),
      { numRuns: RUNS },
    )
  },
  TIMEOUT,
)

test(
  'what a set is sure to say to a peer it says whatever else the packet is',
  () => {
    let sure = 0
    const crowded = fc.record({ put: fc.array(object, { minLength: 30, maxLength: 60 }), gone: fc.array(object, { maxLength: 6 }) })
    const others = fc.record({
      own: fc.constantFrom(0, 1),
      proto: fc.constantFrom(6, 17, 47),
      port: fc.nat(0xffff),
      sourcePort: fc.nat(0xffff),
    })
    fc.assert(
      fc.property(fc.array(crowded, { minLength: 1, maxLength: 3 }), fc.array(others, { minLength: 3 }), (steps, some) => {
        const follower = new Follower(NODE)
        for (const { put, gone } of steps) {
          follower.put(put, gone)
          for (const row of follower.tables.rows.values()) {
            if (row.table !== 'bits' || row.value.sure === SURE_NOT) continue
            sure++
            const { set, class: peer } = row.key
            const rule = follower.tables.rule(set, row.value.sure >> 2)?.number
            for (const other of some)
              expect(walk(follower.tables, { set, peer, ...other })).toMatchObject({ action: ACTIONS[row.value.sure & 3], rule })
          }
        }
      }),
      { numRuns: RUNS },
    )
    expect(sure).toBeGreaterThan(RUNS)
  },
  TIMEOUT,
)

test(
  'what the tables hold depends on what there is, not on how it came to be',
  () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => {
        const follower = new Follower(NODE)
        for (const { put, gone } of steps) follower.put(put, gone)
        const fresh = new PolicyTables()
        fresh.apply(new PolicyCompiler().change(new PolicyFeed(NODE).all(follower.store.snapshot)))
        expect(sortedRows(follower.tables)).toEqual(sortedRows(fresh))
        // and of nothing there is nothing
        follower.put(
          [],
          steps.flatMap(({ put }) => put),
        )
        expect([...follower.tables.rows.keys()]).toEqual([])
        expect(follower.compiler.size).toMatchObject({ addresses: 0, identities: 1, rulesets: 0, groups: 0 })
      }),
      { numRuns: RUNS },
    )
  },
  TIMEOUT,
)

function sortedRows(tables: PolicyTables): readonly (readonly [string, unknown])[] {
  return [...tables.rows].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([key, row]) => [key, row.value] as const)
}
