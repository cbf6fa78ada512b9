// SPDX-License-Identifier: Apache-2.0
/** Packets and bytes of a flow: counted for each direction, once on a node, in the entry where that direction is seen.
 * Layer: test. */
import { protocolNumber } from '#lib/base/ip.ts'
import type { FlowWanted, PacketCase, Step } from '../../../testkit/packets/case.ts'
import { ASKED, NAT_PORT, NODE_PORT, VNI, at, devices, families, type Family } from '../../../testkit/packets/cluster.ts'
import { tcp, tunnel } from '../../../testkit/packets/packet.ts'
import { tunnelPort } from './tunnel-port.ts'

const PORT = 40000
const ETHERNET = 14

/** What the entry by these ends has of what `from` sends: IP packets of these frames. */
function counted(from: string, to: string, frames: readonly Uint8Array[]): FlowWanted {
  return {
    proto: protocolNumber('TCP'),
    from,
    to,
    packets: frames.length,
    bytes: frames.reduce((sum, { length }) => sum + length - ETHERNET, 0),
  }
}

/** Frames of one direction, in their order. */
function conversation(from: string, to: string, ttl = 64): readonly [Uint8Array, Uint8Array, Uint8Array] {
  return [
    tcp(from, to, { flags: 'S', ttl }),
    tcp(from, to, { flags: 'A', ttl, seq: 1001 }),
    tcp(from, to, { flags: 'PA', ttl, seq: 1001, payload: 'a word' }),
  ]
}

function step(say: string, through: Step['through'], of: Pick<Step, 'packet'> & Partial<Step>): Step {
  return { say, through, action: 'redirect', ...of }
}

function plain(f: Family): PacketCase {
  const [client, server] = [at(f.pod, PORT), at(f.secondPod, 80)]
  const [syn, ack, data] = conversation(client, server)
  const [answer, longer] = [tcp(server, client, { flags: 'SA', ack: 1001 }), tcp(server, client, { flags: 'PA', payload: 'an answer' })]
  return {
    name: `${f.name}: packets and bytes of both directions of a flow that is not translated are in its one entry`,
    given: {},
    steps: [
      step('SYN', 'from_workload', { packet: syn, flows: [counted(client, server, [syn])] }),
      step('SYN-ACK', 'from_workload', { packet: answer }),
      step('ACK', 'from_workload', { packet: ack }),
      step('data, the fast way', 'from_workload', { packet: data, flows: [counted(client, server, [syn, ack, data])] }),
      step('answer', 'from_workload', { packet: longer, flows: [counted(server, client, [answer, longer])] }),
    ],
  }
}

function translated(f: Family): PacketCase {
  const [client, front, back] = [at(f.secondPod, PORT), at(f.vip, 80), at(f.pod, 8080)]
  const [syn, ack, data] = conversation(client, front)
  const answers = [tcp(back, client, { flags: 'SA', ack: 1001 }), tcp(back, client, { flags: 'PA', payload: 'an answer' })] as const
  return {
    name: `${f.name}: a translated flow's requests are counted in its client's view, and its answers in its backend's`,
    given: { backends: [{ addr: f.pod, port: 8080 }] },
    steps: [
      step('SYN', 'from_workload', { packet: syn }),
      step('SYN-ACK', 'from_workload', { packet: answers[0] }),
      step('ACK', 'from_workload', { packet: ack }),
      step('data', 'from_workload', { packet: data }),
      step('answer', 'from_workload', {
        packet: answers[1],
        flows: [
          counted(client, front, [syn, ack, data]),
          counted(front, client, []),
          counted(back, client, answers),
          counted(client, back, []),
        ],
      }),
    ],
  }
}

function inTunnel(f: Family): PacketCase {
  const [client, front, back] = [at(f.client, PORT), at(f.node, NODE_PORT), at(f.remotePod, 8080)]
  const [syn, ack] = conversation(client, front)
  const sport = tunnelPort({ src: f.remotePod, dst: f.client, sport: 8080, dport: PORT })
  const inner = tcp(back, client, { flags: 'SA', ttl: 63, ack: 1001 })
  return {
    name: `${f.name}: what comes out of the tunnel is counted without the tunnel's headers`,
    given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
    steps: [
      step('SYN', 'from_host', { packet: syn }),
      step('SYN-ACK', 'from_host', { packet: tunnel(f.otherNode, f.node, { inner, vni: VNI, sport }) }),
      step('ACK', 'from_host', { packet: ack, flows: [counted(client, front, [syn, ack]), counted(back, client, [inner])] }),
    ],
  }
}

function masqueraded(f: Family): PacketCase {
  const [client, server, hidden] = [at(f.maskedPod, PORT), at(f.client, 80), at(f.node, NAT_PORT)]
  const [syn, ack] = conversation(client, server)
  const answer = tcp(server, hidden, { flags: 'SA', ack: 1001 })
  return {
    name: `${f.name}: answers to a masqueraded pod are counted`,
    given: {},
    steps: [
      step('SYN', 'from_workload', { packet: syn }),
      step('SYN-ACK', 'from_host', { packet: answer }),
      step('ACK', 'from_workload', { packet: ack, flows: [counted(client, server, [syn, ack]), counted(server, hidden, [answer])] }),
    ],
  }
}

function byKernel(f: Family): PacketCase {
  const [client, server] = [at(f.pod, PORT), at(f.lost, 80)]
  const [syn] = conversation(client, server)
  const gone = tcp(client, server, { flags: 'S', ttl: 63 })
  const own = conversation(at(f.node, PORT), at(f.pod, 80))[0]
  return {
    name: `${f.name}: a packet that the kernel takes on is not counted again where it leaves, and the node's own is there`,
    given: {},
    steps: [
      step('where it leaves, of the node itself', 'to_workload', {
        packet: own,
        action: 'pass',
        flows: [counted(at(f.node, PORT), at(f.pod, 80), [own])],
      }),
      step('of a pod', 'from_workload', { packet: syn, action: 'pass', flows: [counted(client, server, [syn])] }),
      step('the same, where it leaves', 'to_host', {
        packet: gone,
        ...{ action: 'pass', mark: ASKED, arrived: devices.pod.name, device: devices.underlay.name },
        flows: [counted(client, server, [syn])],
      }),
    ],
  }
}

function judgedAgain(f: Family): PacketCase {
  const [client, server] = [at(f.client, PORT), at(f.pod, 80)]
  const [syn, ack, data] = conversation(client, server)
  return {
    name: `${f.name}: a flow that is judged again keeps its counts, and one that is not counted has none`,
    given: {},
    steps: [
      step('SYN', 'from_host', { packet: syn }),
      step('SYN-ACK', 'from_workload', { packet: tcp(server, client, { flags: 'SA', ack: 1001 }) }),
      step('ACK, after a change of rules', 'from_host', { packet: ack, policies: [], flows: [counted(client, server, [syn, ack])] }),
      step('data, not counted any more', 'from_host', {
        packet: data,
        given: { uncounted: true },
        flows: [counted(client, server, [syn, ack])],
      }),
    ],
  }
}

export const cases: PacketCase[] = families.flatMap((f) =>
  [plain, translated, inTunnel, masqueraded, byKernel, judgedAgain].map((of) => of(f)),
)
