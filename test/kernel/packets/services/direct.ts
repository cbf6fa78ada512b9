// SPDX-License-Identifier: Apache-2.0
/** Answers that do not return through the node that took the request (DSR): both nodes. Layer: test. */
import { tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

function forFamily(f: Family): PacketCase[] {
  const c = at(f.directClient, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.remotePod, 8080)
  const sport = tunnelPort({ src: f.directClient, dst: f.node, sport: PORT, dport: NODE_PORT })
  const mss = f.v4 ? 1500 - 50 - 40 : 1500 - 70 - 60
  const sent = (flags: string, origin: boolean) =>
    tunnel(f.node, f.otherNode, { inner: tcp(c, back, { flags, ttl: 63 }), vni: VNI, sport, ...(origin ? { origin: front } : {}) })
  // the other node's view: a client that meant its node port, with a backend here
  const meant = at(f.otherNode, NODE_PORT)
  const pod = at(f.pod, 8080)
  const got = (inner: Uint8Array, origin: boolean) =>
    tunnel(f.otherNode, f.node, { inner, vni: VNI, sport, ...(origin ? { origin: meant } : {}) })
  return [
    {
      name: `${f.name}: DSR, entry node: the first packets carry the origin, and no answer is waited for`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
      steps: [
        { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S' }), action: 'redirect', out: sent('S', true) },
        { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'redirect', out: sent('A', true) },
        { say: 'data', through: 'from_host', packet: tcp(c, front, { flags: 'PA' }), action: 'redirect', out: sent('PA', false) },
        {
          say: 'data after a pause longer than a connection may take to open',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'PA' }),
          action: 'redirect',
          out: sent('PA', true),
          age: 6_000,
        },
      ],
    },
    {
      name: `${f.name}: DSR, backend's node: answers leave as the service, with an MSS that fits the tunnel`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: got(tcp(c, pod, { flags: 'S', ttl: 63 }), true),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'SA', mss: 1460 }),
          action: 'redirect',
          out: tcp(meant, c, { flags: 'SA', mss, ttl: 63 }),
        },
        {
          say: 'data, which tells nothing',
          through: 'from_host',
          packet: got(tcp(c, pod, { flags: 'A', ttl: 63 }), false),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'A', ttl: 63 }),
        },
        {
          say: 'answer',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'A' }),
          action: 'redirect',
          out: tcp(meant, c, { flags: 'A', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: a node that got no origin answers through the tunnel`,
      given: {},
      steps: [
        {
          say: 'datagram',
          through: 'from_host',
          packet: got(udp(c, pod, { payload: 'x', ttl: 63 }), false),
          action: 'redirect',
          out: udp(c, pod, { payload: 'x', ttl: 63 }),
        },
        {
          say: 'answer',
          through: 'from_workload',
          packet: udp(pod, c, { payload: 'y' }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, {
            inner: udp(pod, c, { payload: 'y', ttl: 63 }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.directClient, sport: 8080, dport: PORT }),
          }),
        },
      ],
    },
    {
      name: `${f.name}: DSR: the port of a connection that both ended, used again when its backend is gone`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
      steps: [
        { say: 'S', through: 'from_host', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
        { say: 'A', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'redirect' },
        { say: 'F', through: 'from_host', packet: tcp(c, front, { flags: 'FA' }), action: 'redirect' },
        {
          say: 'S again',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S', seq: 77_000 }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', seq: 77_000, ttl: 63 }),
          given: { backends: [{ addr: f.pod, port: 8080 }] },
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
