// SPDX-License-Identifier: Apache-2.0
/** What somebody tried who wanted to break it: each was a mistake once. Layer: test. */
import { icmp, l3, tcp, tunnel, udp } from '../../support/packet.ts'
import type { PacketCase, Step } from './case.ts'
import { tunnelPort } from './tunnel-port.ts'
import type { Family } from './world.ts'
import { NAT_PORT, NODE_PORT, VNI, at, families } from './world.ts'

const PORT = 40000
const A_WHILE = 3_000
const payload64 = new Uint8Array(64).map((_, i) => i)

function cut(f: Family, frame: Uint8Array, body: number): Uint8Array {
  const head = 14 + (f.v4 ? 20 : 48)
  const short = frame.slice(0, head + body)
  const view = new DataView(short.buffer)
  if (f.v4) {
    view.setUint16(16, 20 + body)
    fixV4(short)
  } else view.setUint16(18, 8 + body)
  return short
}

function fixV4(frame: Uint8Array): void {
  const view = new DataView(frame.buffer, frame.byteOffset)
  view.setUint16(24, 0)
  let sum = 0
  for (let i = 14; i < 34; i += 2) sum += view.getUint16(i)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  view.setUint16(24, ~sum & 0xffff)
}

/** the same bytes as another protocol */
function asProto(f: Family, frame: Uint8Array, proto: number): Uint8Array {
  const other = frame.slice()
  other[f.v4 ? 23 : 20] = proto
  if (f.v4) fixV4(other)
  return other
}

/** a payload with which the UDP checksum is 0, sent as 0xffff */
function allOnes(make: (payload: Uint8Array) => Uint8Array, checkAt: number): Uint8Array {
  for (let i = 0; i < 65536; i++) {
    const payload = Uint8Array.from([i >> 8, i & 255])
    const frame = make(payload)
    if (frame[checkAt] === 0xff && frame[checkAt + 1] === 0xff) return payload
  }
  throw new Error('none')
}

function forFamily(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const moved = at(f.client, NAT_PORT)
  const pod = at(f.pod, 8080)
  const front = at(f.node, NODE_PORT)
  const vip = at(f.vip, 80)
  const backends = [{ addr: f.pod, port: 8080 }]
  const sport = tunnelPort({ src: f.client, dst: f.pod, sport: PORT, dport: 8080 })
  const backPort = (port: number) => tunnelPort({ src: f.pod, dst: f.client, sport: 8080, dport: port })
  const by = (node: string, packet: Uint8Array) => tunnel(node, f.node, { inner: packet, vni: VNI, sport })
  const part = (from: string, to: string, fragment: { offset: number; more: boolean }) =>
    udp(from, to, { payload: payload64, id: 77, fragment })
  const first = (from: string, to: string) => cut(f, part(from, to, { offset: 0, more: true }), 24)
  const byService: Step[] = [
    { say: 'service S', through: 'from_host', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
    { say: 'service SA', through: 'from_workload', packet: tcp(pod, c, { flags: 'SA' }), action: 'redirect' },
  ]
  const open = [
    { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, window: 100 }), action: 'redirect' },
    {
      say: 'SYN-ACK',
      through: 'from_workload',
      packet: tcp(pod, c, { flags: 'SA', seq: 5000, ack: 1001, window: 100 }),
      action: 'redirect',
    },
    { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
  ] as const
  const name = (text: string) => `${f.name}: ${text}`
  const hairpin = allOnes((payload) => udp(at(f.pod, PORT), vip, { payload }), 14 + (f.v4 ? 20 : 40) + 6)
  const lane = allOnes((payload) => udp(c, pod, { payload }), 14 + (f.v4 ? 20 : 40) + 6)
  const sctp = (ttl: number) => asProto(f, udp(c, pod, { payload: 'some other protocol', ttl }), 132)
  const masked = at(f.node, NAT_PORT)
  const server = at(f.client, 443)
  const [p1, p2] = [at(f.maskedPod, PORT), at(f.maskedPod, PORT + 1)]
  const error = f.v4 ? { type: 3, code: 1 } : { type: 1, code: 0 }
  return [
    {
      name: name('a lane outlives the flow that has lane 0 (entry gone)'),
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
      name: name('two TCP connections by two nodes from one port, beyond their SYNs'),
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
      ],
    },
    {
      name: name('two TCP connections by two nodes from one port: the first keeps its answers'),
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
        { say: 'two A', through: 'from_host', packet: by(f.thirdNode, tcp(c, pod, { flags: 'A', ttl: 63 })), action: 'redirect' },
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
      name: name('a pod cannot speak of fragments that are not its own'),
      given: {},
      steps: [
        { say: 'spoofed first', through: 'from_workload', packet: first(c, at(f.elsewherePod, 9)), action: 'drop', reason: 'DROP_SPOOFED' },
        {
          say: 'a last one whose first was not seen',
          through: 'from_host',
          packet: part(c, at(f.elsewherePod, 9), { offset: 24, more: false }),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
      ],
    },
    {
      name: name('a fragment to a service address does not circle'),
      given: {},
      steps: [{ say: 'last', through: 'from_host', packet: part(c, at(f.bareVip, 9), { offset: 24, more: false }), action: 'drop' }],
    },
    {
      name: name('an ICMP error to a service address does not circle'),
      given: {},
      steps: [
        {
          say: 'error',
          through: 'from_host',
          packet: icmp(f.client, f.bareVip, { ...error, body: l3(tcp(at(f.bareVip, 81), c, { flags: 'SA' })) }),
          action: 'drop',
        },
      ],
    },
    ...(f.v4
      ? [
          {
            name: name('a SYN in a frame padded to 60 bytes is refused with the right number'),
            given: {},
            steps: [
              {
                say: 'SYN',
                through: 'from_host' as const,
                packet: Uint8Array.from([...tcp(c, front, { flags: 'S' }), 0, 0, 0, 0, 0, 0]),
                action: 'redirect' as const,
                out: tcp(front, c, { flags: 'RA', seq: 0, ack: 1001, window: 0 }),
              },
            ],
          },
        ]
      : []),
    {
      name: name('takeover: a SYN on a foreign flow is a new connection (policy)'),
      given: { backends, takeover: true },
      steps: [
        { say: 'one ACK', through: 'from_host', packet: tcp(c, at(f.pod, 22), { flags: 'A' }), action: 'pass', out: 'same' },
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, at(f.pod, 22), { flags: 'S' }),
          action: 'redirect',
        },
      ],
    },
    {
      name: name('takeover over: a SYN on a foreign flow to a service is translated'),
      given: { backends, takeover: true },
      steps: [
        { say: 'one ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A' }), action: 'pass', out: 'same' },
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S' }),
          action: 'redirect',
          out: tcp(c, pod, { flags: 'S', ttl: 63 }),
          age: A_WHILE,
          given: { backends },
        },
      ],
    },
    {
      name: name('a closing flow does not take its port back from its heir'),
      given: {},
      steps: [
        {
          say: '1 S',
          through: 'from_workload',
          packet: tcp(p1, server, { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'S', ttl: 63 }),
        },
        { say: '1 SA', through: 'from_host', packet: tcp(server, masked, { flags: 'SA', seq: 1, ack: 1001 }), action: 'redirect' },
        { say: '1 F', through: 'from_workload', packet: tcp(p1, server, { flags: 'FA', seq: 1001, ack: 2 }), action: 'redirect' },
        { say: '1 F back', through: 'from_host', packet: tcp(server, masked, { flags: 'FA', seq: 2, ack: 1002 }), action: 'redirect' },
        {
          say: '2 S',
          through: 'from_workload',
          packet: tcp(p2, server, { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'S', ttl: 63 }),
        },
        {
          say: '2 SA',
          through: 'from_host',
          packet: tcp(server, masked, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(server, p2, { flags: 'SA', ttl: 63 }),
        },
        { say: '1 F again', through: 'from_workload', packet: tcp(p1, server, { flags: 'FA', seq: 1001, ack: 2 }), action: 'redirect' },
        {
          say: '2 data',
          through: 'from_host',
          packet: tcp(server, masked, { flags: 'A' }),
          action: 'redirect',
          out: tcp(server, p2, { flags: 'A', ttl: 63 }),
        },
      ],
    },
    {
      name: name('a RST of a connection picked up in the middle, sent with data unacknowledged'),
      given: {},
      steps: [
        {
          say: 'client A',
          through: 'from_host',
          packet: tcp(c, pod, { flags: 'A', seq: 1001, ack: 5001, window: 502 }),
          action: 'redirect',
        },
        {
          say: 'pod A',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'A', seq: 5001, ack: 1001, window: 502 }),
          action: 'redirect',
        },
        { say: 'RST', through: 'from_host', packet: tcp(c, pod, { flags: 'R', seq: 1001 + 2896 }), action: 'redirect' },
      ],
    },
    {
      name: name('a RST that is inside the window but not exact does not shorten a living connection'),
      given: { backends },
      steps: [
        ...open,
        { say: 'R', through: 'from_host', packet: tcp(c, front, { flags: 'R', seq: 1050 }), action: 'redirect' },
        {
          say: 'challenge ACK',
          through: 'from_workload',
          packet: tcp(pod, c, { flags: 'A', seq: 5001, ack: 1001, window: 100 }),
          action: 'redirect',
        },
        {
          say: 'data',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, payload: 'x' }),
          action: 'redirect',
        },
        {
          say: 'data after 20 s',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1002, ack: 5001, payload: 'x' }),
          action: 'redirect',
          age: 20_000,
        },
      ],
    },
    {
      name: name('a pod whose address means nothing outside reaches a service whose endpoint is outside'),
      given: { backends: [{ addr: f.client, port: 443 }] },
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: udp(p1, vip, { payload: 'x' }),
          action: 'redirect',
          out: udp(masked, server, { payload: 'x', ttl: 63 }),
        },
      ],
    },
    {
      name: name('other protocols in a lane are not damaged'),
      given: {},
      steps: [
        { say: 'by the other node', through: 'from_host', packet: by(f.otherNode, sctp(63)), action: 'redirect', out: sctp(63) },
        { say: 'directly', through: 'from_host', packet: sctp(64), action: 'redirect', out: sctp(63) },
      ],
    },
    {
      name: name('a UDP flow leaves a gone backend that has the address the client meant'),
      given: { backends: [{ addr: f.node, port: 8080 }] },
      steps: [
        {
          say: 'request',
          through: 'from_host',
          packet: udp(c, front, { payload: 'x' }),
          action: 'pass',
          out: udp(c, at(f.node, 8080), { payload: 'x' }),
        },
        {
          say: 'later',
          through: 'from_host',
          packet: udp(c, front, { payload: 'x' }),
          action: 'redirect',
          out: udp(c, pod, { payload: 'x', ttl: 63 }),
          age: A_WHILE,
          given: { backends },
        },
      ],
    },
    {
      name: name('UDP checksum of all ones, to itself by a service'),
      given: { backends },
      steps: [
        {
          say: 'datagram',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), vip, { payload: hairpin }),
          action: 'redirect',
          out: udp(at(f.vip, PORT), pod, { payload: hairpin, ttl: 63 }),
        },
      ],
    },
    {
      name: name('UDP checksum of all ones, in a lane'),
      given: {},
      steps: [
        {
          say: 'by the other node',
          through: 'from_host',
          packet: by(f.otherNode, udp(c, pod, { payload: 'x', ttl: 63 })),
          action: 'redirect',
        },
        {
          say: 'directly',
          through: 'from_host',
          packet: udp(c, pod, { payload: lane }),
          action: 'redirect',
          out: udp(moved, pod, { payload: lane, ttl: 63 }),
        },
      ],
    },
    {
      name: name('DSR: the port of a connection that both ended, used again when its backend is gone'),
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] },
      steps: [
        { say: 'S', through: 'from_host', packet: tcp(at(f.directClient, PORT), front, { flags: 'S' }), action: 'redirect' },
        { say: 'A', through: 'from_host', packet: tcp(at(f.directClient, PORT), front, { flags: 'A' }), action: 'redirect' },
        { say: 'F', through: 'from_host', packet: tcp(at(f.directClient, PORT), front, { flags: 'FA' }), action: 'redirect' },
        {
          say: 'S again',
          through: 'from_host',
          packet: tcp(at(f.directClient, PORT), front, { flags: 'S', seq: 77_000 }),
          action: 'redirect',
          out: tcp(at(f.directClient, PORT), pod, { flags: 'S', seq: 77_000, ttl: 63 }),
          given: { backends },
        },
      ],
    },
    {
      name: name('a flow in the overlay follows the route to its node'),
      given: {},
      steps: [
        { say: 'one', through: 'from_workload', packet: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x' }), action: 'redirect' },
        {
          say: 'two',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x' }),
          action: 'redirect',
          age: A_WHILE,
          overlayBy: f.thirdNode,
          out: tunnel(f.node, f.thirdNode, {
            inner: udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: 'x', ttl: 63 }),
            vni: VNI,
            sport: tunnelPort({ src: f.pod, dst: f.overlayPod, sport: PORT, dport: 80 }),
          }),
        },
      ],
    },
    {
      name: name('host to a service, backend here whose MAC is not known yet: never out of the device to the network'),
      given: { backends: [{ addr: f.elsewherePod, port: 8080 }] },
      steps: [{ say: 'datagram', through: 'to_host', packet: udp(at(f.node, PORT), vip, { payload: 'x' }), action: 'redirect' }],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => forFamily(f))
