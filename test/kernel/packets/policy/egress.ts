// SPDX-License-Identifier: Apache-2.0
/** What a pod's egress rules see of where it sends to: the table of docs/policy.md, row by row. Layer: test. */
import { FRONTEND_OUTSIDE_LOCAL } from '#lib/base/bpf-constants.ts'
import type { Policy } from '#lib/model/policy.ts'
import type { Given, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { NODE_PORT, at, families, type Family } from '../../../../testkit/packets/cluster.ts'
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import { DENIED, netSide, policy } from './policies.ts'

interface Seen {
  readonly addr: string
  readonly port: number
}

interface Row {
  /** what the pod asks, and what its rules see, in the words of the page */
  readonly asks: string
  readonly sees: 'what was asked' | 'the backend'
  readonly asked: (f: Family) => Seen
  /** with a backend; default: the address is translated, or is not, whatever there is */
  readonly given?: (f: Family) => Given
}

const LB = { IPv4: '203.0.113.80', IPv6: '2001:db8::80' } as const
const PORT = 44_000

export const EGRESS_TABLE: readonly Row[] = [
  { asks: 'a pod, or another host, by its own address', sees: 'what was asked', asked: (f) => ({ addr: f.client, port: 80 }) },
  { asks: 'a cluster address', sees: 'the backend', asked: (f) => ({ addr: f.vip, port: 80 }) },
  {
    asks: "a load balancer's or external address",
    sees: 'the backend',
    asked: (f) => ({ addr: LB[f.name], port: 80 }),
    given: (f) => ({ frontends: [at(LB[f.name], 80)], external: [LB[f.name]] }),
  },
  {
    asks: "such an address that is its own node's",
    sees: 'the backend',
    asked: (f) => ({ addr: f.node, port: 80 }),
    given: (f) => ({ frontends: [at(f.node, 80)] }),
  },
  {
    asks: "such an address that is another node's",
    sees: 'the backend',
    asked: (f) => ({ addr: f.otherNode, port: 80 }),
    given: (f) => ({ frontends: [at(f.otherNode, 80)] }),
  },
  { asks: 'a node port of its own node', sees: 'what was asked', asked: (f) => ({ addr: f.node, port: NODE_PORT }) },
  {
    asks: "a node port at an address of its own node's local prefixes",
    sees: 'what was asked',
    asked: (f) => ({ addr: f.prefixOwn, port: NODE_PORT }),
  },
  { asks: 'a node port of another node', sees: 'what was asked', asked: (f) => ({ addr: f.otherNode, port: NODE_PORT }) },
]

/** Wherever the backend is, and whatever the service's policies are. */
const BACKENDS: readonly (readonly [string, (f: Family) => Given])[] = [
  ['here', (f) => ({ backends: [{ addr: f.pod, port: 8080 }] })],
  ['elsewhere', (f) => ({ backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] })],
  [
    'elsewhere, externalTrafficPolicy Local',
    (f) => ({ backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }], outside: [], flags: FRONTEND_OUTSIDE_LOCAL }),
  ],
]

function casesOf(f: Family, { asks, sees, asked, given }: Row, [where, service]: (typeof BACKENDS)[number]): readonly PacketCase[] {
  const services = { ...service(f), ...given?.(f) }
  const to = asked(f)
  const backend = services.backends?.[0] ?? to
  const [seen, other] = sees === 'the backend' ? [backend, to] : [to, backend]
  const only = ({ addr, port }: Seen): readonly Policy[] => {
    const destination = { ...netSide(`${addr}/${f.v4 ? 32 : 128}`), ports: [{ from: port, to: port }] }
    return [policy('out', { of: 'second', egress: [{ protocols: [6, 17], destination }] })]
  }
  const sent = (of: Pick<Step, 'action' | 'reason'>): readonly Step[] => [
    { say: 'TCP', through: 'from_workload', packet: tcp(at(f.secondPod, PORT), at(to.addr, to.port), { flags: 'S' }), ...of },
    { say: 'UDP', through: 'from_workload', packet: udp(at(f.secondPod, PORT), at(to.addr, to.port), { payload: 'x' }), ...of },
  ]
  const name = `${f.name}: rules of a pod that asks ${asks} see ${sees}, with a backend ${where}`
  return [
    { name, given: { ...services, policies: only(seen) }, steps: sent({ action: 'redirect' }) },
    { name: `${name}, and nothing else`, given: { ...services, policies: only(other) }, steps: sent(DENIED) },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) =>
  EGRESS_TABLE.flatMap((row) => BACKENDS.flatMap((backend) => casesOf(f, row, backend))),
)
