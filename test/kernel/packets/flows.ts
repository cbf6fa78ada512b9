// SPDX-License-Identifier: Apache-2.0
/** Packet lives: pod to pod, services, node ports near and far, in both families. Layer: test. */
import { tcp, tunnel, udp } from '../../support/packet.ts'
import type { FlowWanted, PacketCase, Step } from './case.ts'
import type { Family } from './world.ts'
import { NODE_PORT, VNI, at, families } from './world.ts'

const PORT = 40000
/** keeps the tests' idea of the tunnel's source port in one place: the same hash as tunnel_source_port() in bpf/include/encap.h */
function tunnelPort(frameTuple: { readonly src: string; readonly dst: string; readonly sport: number; readonly dport: number }): number {
  const last = (addr: string) => lastWord(addr)
  let h = (last(frameTuple.src) ^ last(frameTuple.dst) ^ ((swap16(frameTuple.sport) << 16) | swap16(frameTuple.dport))) >>> 0
  h = (h ^ (h >>> 16)) >>> 0
  h = Math.imul(h, 0x45d9f3b) >>> 0
  h = (h ^ (h >>> 16)) >>> 0
  return 0xc000 | (h & 0x3fff)
}

function swap16(n: number): number {
  return ((n & 0xff) << 8) | (n >> 8)
}

/** the last 4 bytes of the address as a little-endian word */
function lastWord(addr: string): number {
  const bytes = addr.includes(':') ? v6Tail(addr) : addr.split('.').map(Number)
  return ((bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8) | ((bytes[2] ?? 0) << 16) | ((bytes[3] ?? 0) << 24)) >>> 0
}

function v6Tail(addr: string): number[] {
  const low = parseInt(addr.slice(addr.lastIndexOf(':') + 1), 16)
  return [0, 0, low >> 8, low & 255]
}

function handshake(
  f: Family,
  ends: { readonly client: string; readonly server: string },
  through: { readonly there: Step['through']; readonly back: Step['through'] },
): Step[] {
  const there = (flags: string, ttl: number, extra = {}) => tcp(at(ends.client, PORT), at(ends.server, 80), { flags, ttl, ...extra })
  const back = (flags: string, ttl: number, extra = {}) => tcp(at(ends.server, 80), at(ends.client, PORT), { flags, ttl, ...extra })
  return [
    { say: `${f.name} SYN`, through: through.there, packet: there('S', 64), action: 'redirect', out: there('S', 63) },
    { say: 'SYN at the destination', through: 'to_workload', packet: there('S', 63), action: 'pass', out: 'same' },
    {
      say: 'SYN-ACK',
      through: through.back,
      packet: back('SA', 64, { ack: 1001 }),
      action: 'redirect',
      out: back('SA', 63, { ack: 1001 }),
    },
    { say: 'ACK', through: through.there, packet: there('A', 64, { seq: 1001 }), action: 'redirect', out: there('A', 63, { seq: 1001 }) },
    {
      say: 'data',
      through: through.there,
      packet: there('PA', 64, { seq: 1001, payload: 'hello' }),
      action: 'redirect',
      out: there('PA', 63, { seq: 1001, payload: 'hello' }),
    },
    {
      say: 'answer',
      through: through.back,
      packet: back('PA', 64, { payload: 'world' }),
      action: 'redirect',
      out: back('PA', 63, { payload: 'world' }),
    },
  ]
}

/** Steps of a service flow: what the client sends is seen by the backend as sent to it, and the other way round. */
function service(options: {
  readonly client: string
  readonly front: string
  readonly back: string
  readonly there: Step['through']
  readonly proto: typeof tcp | typeof udp
}): Step[] {
  const { client, front, back, proto } = options
  const c = at(client, PORT)
  const packet = (from: string, to: string, more: object) =>
    proto === tcp ? tcp(from, to, more) : udp(from, to, { payload: 'x', ...more })
  const step = (
    say: string,
    through: Step['through'],
    packets: { readonly in: [string, string]; readonly out: [string, string]; readonly flags: string },
  ): Step => ({
    say,
    through,
    packet: packet(...packets.in, { flags: packets.flags, ttl: 64 }),
    action: 'redirect',
    out: packet(...packets.out, { flags: packets.flags, ttl: 63 }),
  })
  return [
    step('first packet', options.there, { in: [c, front], out: [c, back], flags: 'S' }),
    step('answer', 'from_workload', { in: [back, c], out: [front, c], flags: 'SA' }),
    step('second packet', options.there, { in: [c, front], out: [c, back], flags: 'A' }),
    step('second answer', 'from_workload', { in: [back, c], out: [front, c], flags: 'A' }),
  ]
}

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
          out: tcp(front, c, { flags: 'SA', ttl: 62 }),
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
          out: tcp(front, c, { flags: 'A', ttl: 62 }),
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
          out: tcp(c, at(f.pod, 8080), { flags: 'S', ttl: 62 }),
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
          out: tcp(c, at(f.pod, 8080), { flags: 'A', ttl: 62, payload: 'hi' }),
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
    {
      name: `${f.name}: tunnel packets from a stranger are dropped, another VNI is left alone`,
      given: {},
      steps: [
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

/** bpf/include/mark.h */
const TRACKED = 0x02000000
const DECIDED = 0x01000000

/** Approval, age and renewal: what the flow table remembers beside the way. */
function lifetimes(f: Family): PacketCase[] {
  const c = at(f.secondPod, PORT)
  const front = at(f.vip, 80)
  const back = at(f.pod, 8080)
  const there: FlowWanted = { proto: 17, from: c, to: front }
  const seenThere: FlowWanted = { proto: 17, from: c, to: back }
  const send = { through: 'from_workload', packet: udp(c, front, { payload: 'x' }), action: 'redirect' } as const
  const local = { backends: [{ addr: f.pod, port: 8080 }] }
  return [
    {
      name: `${f.name}: only the destination's own hook approves, and what is decided passes unseen`,
      given: local,
      steps: [
        { say: 'first', ...send, flows: [{ ...there, approved: false }] },
        { say: 'second', ...send, flows: [{ ...there, approved: false }] },
        {
          say: 'decided already',
          through: 'to_workload',
          mark: DECIDED,
          packet: udp(c, back, { payload: 'x', ttl: 63 }),
          action: 'pass',
          out: 'same',
          flows: [{ ...there, approved: false }],
        },
        {
          say: 'at the destination',
          through: 'to_workload',
          mark: TRACKED,
          packet: udp(c, back, { payload: 'x', ttl: 63 }),
          action: 'pass',
          out: 'same',
          flows: [
            { ...there, approved: true },
            { ...seenThere, approved: true },
          ],
        },
      ],
    },
    {
      name: `${f.name}: a packet after a while refreshes both entries of a translated flow`,
      given: local,
      steps: [
        { say: 'first', ...send },
        {
          say: 'a minute later',
          ...send,
          age: 60_000,
          flows: [
            { ...there, fresh: true },
            { ...seenThere, fresh: true },
          ],
        },
      ],
    },
    {
      name: `${f.name}: an expired flow is none`,
      given: local,
      steps: [
        { say: 'SYN', through: 'from_workload', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
        { say: 'within its time', through: 'from_workload', packet: tcp(c, front, { flags: 'A' }), action: 'redirect', age: 2_000 },
        {
          say: 'after it',
          through: 'from_workload',
          packet: tcp(c, front, { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
          age: 10_000,
        },
      ],
    },
  ]
}

function forFamily(f: Family): PacketCase[] {
  const local = { backends: [{ addr: f.pod, port: 8080 }] }
  return [
    {
      name: `${f.name}: pod to pod on this node`,
      given: {},
      steps: handshake(f, { client: f.pod, server: f.secondPod }, { there: 'from_workload', back: 'from_workload' }),
    },
    ...lifetimes(f),
    {
      name: `${f.name}: outside to pod, no translation`,
      given: {},
      steps: handshake(f, { client: f.client, server: f.pod }, { there: 'from_host', back: 'from_workload' }),
    },
    {
      name: `${f.name}: pod to pod on the other node`,
      given: {},
      steps: handshake(f, { client: f.pod, server: f.remotePod }, { there: 'from_workload', back: 'from_host' }).filter(
        (s) => s.through !== 'to_workload',
      ),
    },
    ...[tcp, udp].flatMap((proto): PacketCase[] => [
      {
        name: `${f.name} ${proto.name}: pod to cluster IP, backend on this node`,
        given: local,
        steps: service({ client: f.secondPod, front: at(f.vip, 80), back: at(f.pod, 8080), there: 'from_workload', proto }),
      },
      {
        name: `${f.name} ${proto.name}: outside to node port, backend on this node`,
        given: local,
        steps: service({ client: f.client, front: at(f.node, NODE_PORT), back: at(f.pod, 8080), there: 'from_host', proto }),
      },
      {
        name: `${f.name} ${proto.name}: outside to cluster IP`,
        given: local,
        steps: service({ client: f.client, front: at(f.vip, 80), back: at(f.pod, 8080), there: 'from_host', proto }),
      },
    ]),
    ...nodePortFar(f),
    {
      name: `${f.name}: a pod that is its own backend sees the service as its peer`,
      given: local,
      steps: [
        {
          say: 'SYN',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.vip, PORT), at(f.pod, 8080), { flags: 'S', ttl: 63 }),
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(at(f.pod, 8080), at(f.vip, PORT), { flags: 'SA' }),
          action: 'redirect',
          out: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'SA', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: UDP without checksum stays without`,
      given: local,
      steps: f.v4
        ? [
            {
              say: 'datagram',
              through: 'from_host',
              packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'abc', noChecksum: true }),
              action: 'redirect',
              out: udp(at(f.client, PORT), at(f.pod, 8080), { payload: 'abc', noChecksum: true, ttl: 63 }),
            },
          ]
        : [
            {
              say: 'datagram',
              through: 'from_host',
              packet: udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'abc' }),
              action: 'redirect',
              out: udp(at(f.client, PORT), at(f.pod, 8080), { payload: 'abc', ttl: 63 }),
            },
          ],
    },
    {
      name: `${f.name}: what is not for us is left alone`,
      given: local,
      steps: [
        {
          say: 'to the node itself',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'transit',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.stranger, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: "the host's own",
          through: 'to_host',
          packet: tcp(at(f.node, PORT), at(f.client, 22), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'pod to its node',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.node, 10250), { flags: 'S' }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: backend in the host's network: answered through the host's own hooks`,
      given: { backends: [{ addr: f.node, port: 8080 }] },
      steps: [
        {
          say: 'SYN from outside',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' }),
          action: 'pass',
          out: tcp(at(f.client, PORT), at(f.node, 8080), { flags: 'S' }),
        },
        {
          say: 'SYN-ACK',
          through: 'to_host',
          packet: tcp(at(f.node, 8080), at(f.client, PORT), { flags: 'SA' }),
          action: 'pass',
          out: tcp(at(f.node, NODE_PORT), at(f.client, PORT), { flags: 'SA' }),
        },
        {
          say: 'SYN from a pod',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'pass',
          out: tcp(at(f.pod, PORT), at(f.node, 8080), { flags: 'S' }),
        },
        {
          say: 'SYN-ACK to the pod',
          through: 'to_workload',
          packet: tcp(at(f.node, 8080), at(f.pod, PORT), { flags: 'SA' }),
          action: 'pass',
          out: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'SA' }),
        },
      ],
    },
    {
      name: `${f.name}: a mid-flow packet to a service is no new flow`,
      given: local,
      steps: [
        {
          say: 'ACK',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
