// SPDX-License-Identifier: Apache-2.0
/** Flows with the addresses and ports of others, beyond their first packets. Layer: test. */
import { tcp, tunnel, udp } from '../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import { tunnelPort } from './tunnel-port.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { fixHeader } from './headers/cut.ts'
import { NAT_PORT, NODE_PORT, VNI, at, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000

/** the same bytes as another protocol */
function asProto(f: Family, frame: Uint8Array, proto: number): Uint8Array {
  const other = frame.slice()
  other[f.v4 ? 23 : 20] = proto
  if (f.v4) fixHeader(other)
  return other
}

function lanes(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const moved = at(f.client, NAT_PORT)
  const pod = at(f.pod, 8080)
  const front = at(f.node, NODE_PORT)
  const backends = [{ addr: f.pod, port: 8080 }]
  const sport = tunnelPort({ src: f.client, dst: f.pod, sport: PORT, dport: 8080 })
  const backPort = (port: number) => tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: port })
  const by = (node: string, packet: Uint8Array) => tunnel(node, f.node, { inner: packet, vni: VNI, sport })
  const byService: Step[] = [
    { say: 'service S', through: 'from_host', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
    { say: 'service SA', through: 'from_workload', packet: tcp(pod, c, { flags: 'SA' }), action: 'redirect' },
  ]
  const sctp = (ttl: number) => asProto(f, udp(c, pod, { payload: 'some other protocol', ttl }), 132)
  return [
    {
      name: `${f.name}: a flow in a zone of its own outlives the flow in zone 0 (entry gone)`,
      given: { backends },
      steps: [
        ...byService,
        {
          say: 'direct S',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'S' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'direct SA',
          through: 'from_workload',
          packet: tcp(pod, moved, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(pod, c, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'direct A, the other is swept away',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'A' }),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'A', ttl: 63 }),
          forget: { proto: 6, from: c, to: pod },
        },
      ],
    },
    {
      name: `${f.name}: two TCP connections by two nodes from one port, beyond their SYNs: the first keeps its answers`,
      given: {},
      steps: [
        {
          say: 'one S',
          through: 'from_host',
          packet: by(f.otherNode, tcp(c, pod, { flags: 'S', ttl: 63 })),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'two S',
          through: 'from_host',
          packet: by(f.thirdNode, tcp(c, pod, { flags: 'S', ttl: 63 })),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'two A',
          through: 'from_host',
          packet: by(f.thirdNode, tcp(c, pod, { flags: 'A', ttl: 63 })),
          action: 'redirect',
          out: tcp(moved, pod, { flags: 'A', ttl: 63 }),
        },
        {
          say: 'answer of one',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'A' }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, { inner: tcp(pod, c, { flags: 'A', ttl: 63 }), vni: VNI, sport: backPort(PORT) }),
        },
      ],
    },
    {
      name: `${f.name}: other protocols in a zone of their own are not damaged`,
      given: {},
      steps: [
        { say: 'by the other node', through: 'from_host', packet: by(f.otherNode, sctp(63)), action: 'redirect', out: sctp(63) },
        { say: 'directly', through: 'from_host', packet: sctp(64), action: 'redirect', out: sctp(63) },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(lanes)
