// SPDX-License-Identifier: Apache-2.0
/** Node ports whose backend is on another node: both nodes, and which senders may use the tunnel. Layer: test. */
import { tcp, tunnel } from '../../../../testkit/packets/packet.ts'
import type { Given, PacketCase } from '../../../../testkit/packets/case.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NAT_PORT, NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 40000

function nodePortFar(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.remotePod, 8080)
  const sport = tunnelPort({ src: f.client, dst: f.node, sport: PORT, dport: NODE_PORT })
  const inside = (flags: string, more = {}) => tcp(c, back, { flags, ttl: 63, ...more })
  const sent = (flags: string, more = {}) => tunnel(f.node, f.otherNode, { inner: inside(flags, more), vni: VNI, sport })
  const answer = (flags: string, ttl: number) => tcp(back, c, { flags, ttl })
  const replyPort = tunnelPort({ src: f.remotePod, dst: f.client, sport: 8080, dport: PORT })
  const mss = f.v4 ? 1500 - 50 - 40 : 1500 - 70 - 60
  return [
    {
      name: `${f.name}: node port, backend on the other node: into the tunnel, client's address kept`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
      steps: [
        {
          say: 'SYN, MSS clamped',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S', mss: 1460 }),
          action: 'redirect',
          out: sent('S', { mss }),
        },
        {
          say: 'SYN-ACK from the tunnel',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: answer('SA', 63), vni: VNI, sport: replyPort }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'SA', ttl: 63 }),
        },
        { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'redirect', out: sent('A') },
        {
          say: 'data',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'PA', payload: 'hello' }),
          action: 'redirect',
          out: sent('PA', { payload: 'hello' }),
        },
        {
          say: 'answer',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: answer('A', 63), vni: VNI, sport: replyPort }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'A', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: node port at another node, backend here: out of the tunnel, answers go back into it`,
      given: {},
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: tcp(c, at(f.pod, 8080), { flags: 'S', ttl: 63 }), vni: VNI, sport }),
          action: 'redirect',
          out: tcp(c, at(f.pod, 8080), { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK, MSS clamped',
          through: 'from_workload',
          packet: tcp(at(f.pod, 8080), c, { flags: 'SA', mss: 1460 }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, {
            inner: tcp(at(f.pod, 8080), c, { flags: 'SA', ttl: 63, mss }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: PORT }),
          }),
        },
        {
          say: 'data',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: tcp(c, at(f.pod, 8080), { flags: 'A', ttl: 63, payload: 'hi' }), vni: VNI, sport }),
          action: 'redirect',
          out: tcp(c, at(f.pod, 8080), { flags: 'A', ttl: 63, payload: 'hi' }),
        },
        {
          say: 'answer',
          through: 'from_workload',
          packet: tcp(at(f.pod, 8080), c, { flags: 'A' }),
          action: 'redirect',
          out: tunnel(f.node, f.otherNode, {
            inner: tcp(at(f.pod, 8080), c, { flags: 'A', ttl: 63 }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: PORT }),
          }),
        },
      ],
    },
    ...(['sack', 'timestamps', 'odd', 'unknown'] as const).map((layout): PacketCase => ({
      name: `${f.name}: an MSS is clamped wherever it stands among options (${layout})`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S', mss: 1460, layout }),
          action: 'redirect',
          out: sent('S', { mss, layout }),
        },
        {
          say: 'of another flow, with a window scale',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S', mss: 1460, layout, wscale: 7, seq: 2000 }),
          action: 'redirect',
          out: sent('S', { mss, layout, wscale: 7, seq: 2000 }),
        },
      ],
    })),
    {
      name: `${f.name}: tunnel packets from a stranger are dropped, another VNI is left alone`,
      given: {},
      steps: [
        {
          say: 'a pod that plays a node',
          through: 'from_workload',
          packet: tunnel(f.pod, f.node, { inner: inside('S'), vni: VNI, sport }),
          action: 'drop',
          reason: 'DROP_TUNNEL_SOURCE',
        },
        {
          say: "a pod that plays a node with the node's address",
          through: 'from_workload',
          packet: tunnel(f.otherNode, f.node, { inner: inside('S'), vni: VNI, sport }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
        {
          say: 'stranger',
          through: 'from_host',
          packet: tunnel(f.stranger, f.node, { inner: inside('S'), vni: VNI, sport }),
          action: 'drop',
          reason: 'DROP_TUNNEL_SOURCE',
        },
        {
          say: 'a pod',
          through: 'from_host',
          packet: tunnel(f.pod, f.node, { inner: inside('S'), vni: VNI, sport }),
          action: 'drop',
          reason: 'DROP_TUNNEL_SOURCE',
        },
        {
          say: 'another VNI',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.node, { inner: inside('S'), vni: 4096, sport }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'another destination',
          through: 'from_host',
          packet: tunnel(f.otherNode, f.stranger, { inner: inside('S'), vni: VNI, sport }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
  ]
}

/** An endpoint without a node: a server outside, or one whose slice was made by hand. */
function nodePortOutside(f: Family): PacketCase[] {
  const front = at(f.node, NODE_PORT)
  const us = at(f.node, NAT_PORT)
  return [f.stranger, f.remotePod, f.otherNode].map((addr) => {
    const c = at(f.client, PORT)
    const back = at(addr, 8080)
    return {
      name: `${f.name}: node port, backend ${addr} on no known node: it is asked by this node, for its answer to come back here`,
      given: { backends: [{ addr, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(us, back, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_host',
          packet: tcp(back, us, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'SA', ttl: 63 }),
        },
        {
          say: 'ACK',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A' }),
          action: 'redirect',
          out: tcp(us, back, { flags: 'A', ttl: 63 }),
        },
        {
          say: 'another client: there is no further port for this backend',
          through: 'from_host',
          packet: tcp(at(f.client, PORT + 1), front, { flags: 'S' }),
          action: 'drop',
          reason: 'DROP_PORT_COLLISION',
        },
      ],
    }
  })
}

/** Endpoints that would be translated again where they are: a node port of another node, or an address of a service. */
function nodePortRound(f: Family): PacketCase[] {
  const [third, other] = [at(f.thirdNode, NAT_PORT), at(f.otherNode, NODE_PORT)]
  const round: readonly (readonly [string, string, string])[] = [
    ["a node's, to another node port of that node", at(f.otherNode, NAT_PORT), other],
    ["a node's, to a node port of a third node", third, other],
    ["a node's, to an address of a service", third, at(f.bareVip, 80)],
    ["a node's, to an address of a service that is a node's own", third, at(f.otherNode, 8442)],
    ["another cluster's node, back to it", at(f.stranger, NAT_PORT), at(f.stranger, 31_000)],
  ]
  const once: readonly (readonly [string, string, string])[] = [
    ["a client's, to a node port", at(f.client, PORT), other],
    ["a client's, by a port of those that nodes use", at(f.client, NAT_PORT), at(f.stranger, 31_000)],
    ["a node's own, to a node port", at(f.thirdNode, PORT), other],
    ["a node's, to a port of a node that is no service's", third, at(f.otherNode, 9100)],
    ["a node's, to a server outside", third, at(f.stranger, 8080)],
    ['a server outside, back to it', at(f.stranger, PORT), at(f.stranger, 8080)],
  ]
  const given = (to: string): Given => {
    const colon = to.lastIndexOf(':')
    return {
      backends: [{ addr: to.slice(0, colon).replace(/[[\]]/g, ''), port: Number(to.slice(colon + 1)) }],
      frontends: [at(f.bareVip, 80), at(f.otherNode, 8442)],
    }
  }
  const packet = (from: string) => tcp(from, at(f.node, NODE_PORT), { flags: 'S' })
  return [
    ...round.map(([name, from, to]): PacketCase => ({
      name: `${f.name}: what a node has translated is not sent round: ${name}`,
      given: given(to),
      steps: [{ say: 'SYN', through: 'from_host', packet: packet(from), action: 'drop', reason: 'DROP_SERVICE_LOOP' }],
    })),
    ...once.map(([name, from, to]): PacketCase => ({
      name: `${f.name}: a packet is translated once, wherever the endpoint is: ${name}`,
      given: given(to),
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: packet(from),
          action: 'redirect',
          out: tcp(at(f.node, NAT_PORT), to, { flags: 'S', ttl: 63 }),
        },
      ],
    })),
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...nodePortFar(f), ...nodePortOutside(f), ...nodePortRound(f)])
