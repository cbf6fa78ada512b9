// SPDX-License-Identifier: Apache-2.0
/** Whatever the policies of one namespace want, tables have room and others' verdicts stay. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import type { Rows } from '#agent/compile/policy/rulesets/policy-quota.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { and, equals } from '#lib/model/selector/selector.ts'
import { NODE, packet, pod, policy } from '../arbitrary.ts'
import { Follower, Oracle } from '../follower.ts'
import { fromNets, fullest, NAMESPACE, spacePolicy } from './policy-quota-world.ts'
import { fromSide, toPorts } from '../../../../../testkit/policy/scale.ts'

/** RUNS=3000 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 30)
const LARGE: Rows = { rules: 10_000, ports: 10_000, pages: 10_000, bits: 10_000, nets: 10_000 }
const SMALL: Rows = { rules: 38, ports: 24, pages: 8, bits: 160, nets: 8 }

/** Of namespace y and the cluster, small: what they want is a quarter of the tables at the most. */
const others: readonly Policy[] = [
  spacePolicy('y', {
    ingress: [
      ruleOf(0, { protocols: [6], source: fromSide(equals('app', '1')), destination: toPorts(80) }),
      ruleOf(1, { source: fromNets(['192.0.2.0/24', '10.0.0.0/24']) }),
    ],
  }),
  {
    ...spacePolicy('', { ingress: [ruleOf(0, { action: 'deny', source: { ...ANYWHERE, selector: equals('env', '2') } })] }),
    kind: 'GlobalNetworkPolicy',
    order: 1,
    subject: equals('env', '1'),
  },
]

function twice(rules: readonly Rule[] | undefined): readonly Rule[] | undefined {
  return rules && [...rules, ...rules].map((rule, at) => ({ ...rule, at }))
}

/** Of namespace x alone. */
const wanted = policy.map(({ name, subject, ingress, egress }): Policy => {
  const of = { ...spacePolicy('x', { ingress: [] }), name, ingress: twice(ingress), egress: twice(egress) }
  return { ...of, subject: and(equals(NAMESPACE, 'x'), subject) }
})
const change = fc.record({ put: fc.array(wanted, { maxLength: 10 }), gone: fc.array(wanted, { maxLength: 3 }), isAlone: fc.boolean() })
const pods = fc.array(pod, { minLength: 10, maxLength: 20 })

/** What the tables would be of what there is, at once. */
function freshRows({ store }: Follower, sizes: Rows): PolicyTables['rows'] {
  const tables = new PolicyTables()
  tables.apply(new PolicyCompiler(undefined, sizes).change(new PolicyFeed(NODE).all(store.snapshot)))
  return tables.rows
}

const NO_ROOM = 'no room deny'

test.each<[string, Rows]>([
  ['any table', SMALL],
  ['rules', { ...LARGE, rules: SMALL.rules }],
  ['ports', { ...LARGE, ports: SMALL.ports }],
  ['pages', { ...LARGE, pages: SMALL.pages }],
  ['bits', { ...LARGE, bits: SMALL.bits }],
  ['nets', { ...LARGE, nets: SMALL.nets }],
])('one namespace may want more than there is of %s, while others come and go', { timeout: Math.max(60_000, RUNS * 400) }, (_, sizes) => {
  const seen = { closed: 0, open: 0 }
  const asked = fc.array(packet, { minLength: 10, maxLength: 30 })
  fc.assert(
    fc.property(pods, fc.array(change, { minLength: 1, maxLength: 6 }), asked, (some, changes, packets) => {
      const follower = new Follower(NODE, sizes)
      follower.put(some)
      const isOfOthers = (addr: string): boolean =>
        some.every(({ namespace, podIPs }) => namespace !== 'x' || !podIPs.some((own) => own === addr))
      for (const { put, gone, isAlone } of changes) {
        const { tables, compiler } = follower
        const steps = isAlone ? follower.change(put, [...gone, ...others]) : follower.change([...put, ...others], gone)
        expect(fullest(tables, steps, sizes)).toEqual([])
        const closed = compiler.noRoom.map(({ namespace }) => namespace)
        expect(['', 'x']).toContain(closed.join())
        seen[closed.length > 0 ? 'closed' : 'open']++
        const oracle = new Oracle(follower)
        for (const one of packets)
          for (const direction of ['ingress', 'egress'] as const) {
            const verdict = follower.verdict(one, { direction })
            const own = direction === 'ingress' ? one.dst : one.src
            if (closed.length > 0 && !isOfOthers(own) && verdict === NO_ROOM) continue
            expect([one, direction, verdict]).toEqual([one, direction, oracle.verdict(one, { direction })])
          }
        expect(sorted(tables.rows)).toEqual(sorted(freshRows(follower, sizes)))
      }
    }),
    { numRuns: RUNS },
  )
  expect(Math.min(seen.closed, seen.open)).toBeGreaterThan(0)
})

function sorted(rows: PolicyTables['rows']): readonly (readonly [string, unknown])[] {
  return [...rows].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([key, row]) => [key, row.value] as const)
}
