// SPDX-License-Identifier: Apache-2.0
/** Classes of endpoints hide no difference: what any two pods would see is found. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAddr, type Addr } from '#lib/base/ip.ts'
import { DIRECTIONS } from '#lib/model/policy.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import { TCP, UDP } from '#lib/policy/packet.ts'
import { compareVerdicts } from '#upgrade/storage/verdicts/compare.ts'
import { storedObjects, worldOf, type World } from '#upgrade/storage/verdicts/worlds.ts'
import { namespace, type Manifest } from '../../support/build.ts'
import { pod } from '../stored/addresses.ts'
import { raw } from '../stored/stored.ts'

const LETTERS = ['a', 'b', 'c'] as const
const OUTSIDE = ['10.9.0.1', '10.9.0.200', '192.0.2.7'].map(parseAddr)
const PORTS = [1, 80, 90, 100]

const CLUSTER: readonly Manifest[] = [
  ...['red', 'blue'].map((name) => namespace(name, { color: name })),
  ...['red', 'blue'].flatMap((name, space) =>
    LETTERS.flatMap((app, at) =>
      [0, 1].map((copy) => {
        const one = pod(`${name}/${app}${copy}`, 'n', `10.0.${space}.${at * 2 + copy + 1}`)
        return { ...one, metadata: { namespace: name, name: `${app}${copy}`, labels: { app, copy: `${copy}` } } }
      }),
    ),
  ),
]

const selector = fc.constantFrom('all()', "app == 'a'", "app != 'b'", 'has(role)', "app in {'b', 'c'}", "copy == '1'")
const side = fc.record(
  {
    selector,
    notSelector: selector,
    namespaceSelector: fc.constantFrom("color == 'red'", 'all()'),
    nets: fc.subarray(['10.0.0.0/30', '10.9.0.0/25', '10.0.1.4/32'], { minLength: 1 }),
    notNets: fc.subarray(['10.9.0.0/16', '10.0.0.2/31'], { minLength: 1 }),
    ports: fc.subarray([80, '90:100'], { minLength: 1 }),
  },
  { requiredKeys: [] },
)
const rule = fc.record(
  { action: fc.constantFrom('Allow', 'Deny', 'Pass'), protocol: fc.constantFrom('TCP', 'UDP'), source: side, destination: side },
  { requiredKeys: ['action', 'protocol'] },
)
const policy = fc
  .record({
    name: fc.constantFrom('p', 'q', 'r'),
    order: fc.constantFrom(1, 2),
    subject: selector,
    ingress: fc.array(rule, { maxLength: 2 }),
    egress: fc.array(rule, { maxLength: 2 }),
  })
  .map(({ name, order, subject, ingress, egress }) =>
    raw('GlobalNetworkPolicy', `default.${name}`, { spec: { order, selector: subject, types: ['Ingress', 'Egress'], ingress, egress } }),
  )
const set = fc
  .subarray(['10.9.0.0/25', '192.0.2.0/24'], { minLength: 1 })
  .map((nets) => raw('GlobalNetworkSet', 'partners', { labels: { role: 'partner' }, spec: { nets } }))
const stored = fc.tuple(fc.array(policy, { minLength: 1, maxLength: 3 }), fc.array(set, { maxLength: 1 })).map((all) => all.flat())

const worldWith = (objects: readonly unknown[]): World => worldOf([...storedObjects(objects), ...CLUSTER])

/** Every pod with every other address, by the plain evaluator. */
function differs({ snapshot: before }: World, { snapshot: after }: World): boolean {
  const [was, is] = [new Evaluator(before), new Evaluator(after)]
  const pods = [...before.pods.values()]
  const addresses = [...pods.flatMap(({ podIPs }) => podIPs), ...OUTSIDE]
  const isOther = (at: number, other: Addr, { protocol, dport }: { readonly protocol: number; readonly dport: number }): boolean =>
    DIRECTIONS.some((direction) => {
      const [one] = [pods[at]]
      const own = one?.podIPs[0]
      if (one === undefined || own === undefined || own === other) return false
      const [src, dst] = direction === 'egress' ? [own, other] : [other, own]
      return [80, 40_001].some((sport) => {
        const packet = { src, dst, protocol, sport, dport, icmp: undefined }
        return was.pod(one, packet, { direction }).action !== is.pod(one, packet, { direction }).action
      })
    })
  return pods.some((_, at) =>
    addresses.some((other) => [TCP, UDP].some((protocol) => PORTS.some((dport) => isOther(at, other, { protocol, dport })))),
  )
}

test('a difference between any two of them is found', { timeout: 60_000 }, () => {
  let found = 0
  fc.assert(
    fc.property(stored, stored, (one, [other]) => {
      const [before, after] = [worldWith(one), worldWith([...one.slice(1), other])]
      if (!differs(before, after)) return
      found++
      expect(compareVerdicts(before.snapshot, after.snapshot).different).toBeGreaterThan(0)
    }),
    { numRuns: 30 },
  )
  expect(found).toBeGreaterThan(3)
})
