// SPDX-License-Identifier: Apache-2.0
/** What a pod sends to itself: by its own address no rule is asked, by a service those of ClusterNetworkPolicies.
 * Layer: test. */
import type { Policy } from '#lib/model/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { NODE_PORT, at, families, type Family } from '../../../../testkit/packets/cluster.ts'
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import { DENIED, opens, policy, toPort } from './policies.ts'

const PORT = 44_000
const CLUSTER = { of: 'pod', kind: 'ClusterNetworkPolicy' } as const
const ADMIN = { ...CLUSTER, tier: 'adminnetworkpolicy' } as const
const deny = { action: 'deny' } as const
const closed = policy('closed', { of: 'pod', ingress: [], egress: [] })

/** Of the pod, and whether it reaches itself by a service all the same. */
const POLICIES: readonly (readonly [string, readonly Policy[], boolean])[] = [
  ['a policy that allows nothing', [closed], true],
  ['a policy that denies what comes', [policy('no', { of: 'pod', ingress: [deny] })], true],
  ['a ClusterNetworkPolicy that denies what comes', [policy('in', { ...ADMIN, ingress: [deny] })], false],
  ['a ClusterNetworkPolicy that denies what goes', [policy('out', { ...ADMIN, egress: [deny] })], false],
  ['one that denies its port', [policy('in', { ...ADMIN, ingress: [{ ...toPort(8080), ...deny }] })], false],
  ['one that denies another port', [policy('in', { ...ADMIN, ingress: [{ ...toPort(80), ...deny }] })], true],
  [
    'one that allows it, before one that denies',
    [policy('in', { ...ADMIN, ingress: [{}] }), policy('no', { ...ADMIN, ingress: [deny] })],
    true,
  ],
  ['one that passes it on to a policy that allows nothing', [policy('in', { ...ADMIN, ingress: [{ action: 'pass' }] }), closed], true],
  ['one that denies after a policy that allows', [...opens(8080), policy('z', { ...CLUSTER, ingress: [deny] })], true],
]

function casesOf(f: Family): readonly PacketCase[] {
  const own = at(f.pod, PORT)
  const sent = (say: string, to: string, of: Pick<Step, 'action' | 'reason'>): readonly Step[] => [
    { say: `TCP to ${say}`, through: 'from_workload', packet: tcp(own, to, { flags: 'S' }), ...of },
    { say: `UDP to ${say}`, through: 'from_workload', packet: udp(own, to, { payload: 'x' }), ...of },
  ]
  return POLICIES.map(([what, policies, reaches]) => ({
    name: `${f.name}: a pod that reaches itself by a service under ${what}`,
    given: { backends: [{ addr: f.pod, port: 8080 }], policies },
    steps: [
      ...sent('its own address', at(f.pod, 8080), { action: 'redirect' }),
      ...sent('its service', at(f.vip, 80), reaches ? { action: 'redirect' } : DENIED),
      ...sent('its node port', at(f.node, NODE_PORT), reaches ? { action: 'redirect' } : DENIED),
    ],
  }))
}

/** The same rules at every packet of the flow: what changes while it is open. */
function openFlow(f: Family): PacketCase {
  const [own, back] = [at(f.pod, PORT), at(f.pod, 8080)]
  const asks = tcp(own, at(f.vip, 80), { flags: 'A' })
  const answers = tcp(back, at(f.vip, PORT), { flags: 'A' })
  const both = (say: string, policies: readonly Policy[], of: Pick<Step, 'action' | 'reason'>): readonly Step[] => [
    { say: `${say}: its packet`, through: 'from_workload', packet: asks, policies, ...of },
    { say: `${say}: the answer, asked about once more`, through: 'from_workload', packet: answers, policies: [...policies], ...of },
  ]
  const redirect = { action: 'redirect' } as const
  return {
    name: `${f.name}: a pod's flow to itself by a service, while its policies change`,
    given: { backends: [{ addr: f.pod, port: 8080 }], policies: [closed] },
    steps: [
      { say: 'SYN', through: 'from_workload', packet: tcp(own, at(f.vip, 80), { flags: 'S' }), ...redirect },
      { say: 'SYN, ACK', through: 'from_workload', packet: tcp(back, at(f.vip, PORT), { flags: 'SA' }), ...redirect },
      ...both('a policy that denies', [policy('no', { of: 'pod', ingress: [deny], egress: [deny] })], redirect),
      ...both('a ClusterNetworkPolicy that denies', [policy('in', { ...ADMIN, ingress: [deny] }), closed], DENIED),
      ...both('without it', [closed], redirect),
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...casesOf(f), openFlow(f)])
