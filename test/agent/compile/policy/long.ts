// SPDX-License-Identifier: Apache-2.0
/** Lines of several words and blocks, and packets that their rules mean, one by its destination port, another by its
 * source port. Layer: test. */
import fc from 'fast-check'
import { parseCidr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { ALL, equals } from '#lib/model/selector/selector.ts'
import type { Packet } from '#lib/policy/packet.ts'

const FIRST = 1000
const SOURCES = [40_000, 40_001]
/** of pods in dense worlds */
const OWN = [[parseCidr('10.0.0.0/24')], [parseCidr('10.0.1.0/24')]]

const action = fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const, 'pass' as const)
const rule = fc.record({
  action,
  app: fc.constantFrom('1', '2', undefined),
  source: fc.constantFrom(...SOURCES, undefined),
  own: fc.constantFrom(undefined, ...OWN),
})

/** Rules that hold for a port each, the next one's as well. */
function rulesOf(length: number): fc.Arbitrary<readonly Rule[]> {
  return fc.array(rule, { minLength: length, maxLength: length, size: 'max' }).map((all) =>
    all.map(({ action: what, app, source, own }, at) =>
      ruleOf(at, {
        action: what,
        protocols: [6],
        source: {
          ...ANYWHERE,
          selector: app === undefined ? undefined : equals('app', app),
          ports: source === undefined ? undefined : [{ from: source, to: source }],
        },
        destination: { ...ANYWHERE, nets: own, ports: [{ from: FIRST + at, to: FIRST + at + 1 }] },
      }),
    ),
  )
}

export interface Long {
  readonly policies: readonly Policy[]
  /** without addresses */
  readonly packets: readonly Pick<Packet, 'protocol' | 'sport' | 'dport' | 'icmp'>[]
}

/** Two policies for all endpoints, of as many rules each; what the first passes the second is asked. */
export function longLine(length: number): fc.Arbitrary<Long> {
  const packet = fc
    .record({ at: fc.integer({ min: 0, max: length }), sport: fc.constantFrom(...SOURCES, 40_002) })
    .map(({ at, sport }) => ({ protocol: 6, sport, dport: FIRST + at, icmp: undefined }))
  const policy = fc.record({ ingress: rulesOf(length) })
  return fc
    .record({ all: fc.tuple(policy, policy), packets: fc.array(packet, { minLength: 30, maxLength: 30 }) })
    .map(({ all, packets }) => ({ packets, policies: all.map(({ ingress }, at) => policyOf(at, ingress)) }))
}

function policyOf(at: number, ingress: readonly Rule[]): Policy {
  return {
    kind: 'GlobalNetworkPolicy',
    namespace: '',
    name: `long${at}`,
    tier: at === 0 ? 'adminnetworkpolicy' : 'default',
    order: 1,
    subject: ALL,
    ingress,
    egress: undefined,
    staged: undefined,
    scope: 'normal',
  }
}
