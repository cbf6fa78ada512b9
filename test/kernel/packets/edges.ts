// SPDX-License-Identifier: Apache-2.0
/** What is not an ordinary packet: ICMP, neighbours, hop limits, sizes, fragments, damage, RST, collisions. Layer: test. */
import { arp, concat, icmp, l3, macBytes, tcp, tunnel, udp } from '../../support/packet.ts'
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import type { PacketCase } from './case.ts'
import type { Family } from './world.ts'
import { NODE_PORT, VNI, at, devices, families } from './world.ts'

const PORT = 41000

interface IcmpNumbers {
  readonly unreachable: [number, number]
  readonly expired: [number, number]
  readonly tooBig: [number, number]
  readonly echo: number
  readonly reply: number
}

function numbers(f: Family): IcmpNumbers {
  return f.v4
    ? { unreachable: [3, 3], expired: [11, 0], tooBig: [3, 4], echo: 8, reply: 0 }
    : { unreachable: [1, 4], expired: [3, 0], tooBig: [2, 0], echo: 128, reply: 129 }
}

/** The error a node sends about `packet`, quoting as much as the programs quote. */
function error(
  f: Family,
  about: { readonly packet: Uint8Array; readonly to: string; readonly kind: [number, number]; readonly mtu?: number },
): Uint8Array {
  const quoted = l3(about.packet)
  const head = f.v4 ? 20 : 40
  const length = quoted.length >= head + 28 ? head + 28 : quoted.length >= head + 20 ? head + 20 : head + 8
  return icmp(f.node, about.to, {
    type: about.kind[0],
    code: about.kind[1],
    word: about.mtu ?? 0,
    body: quoted.subarray(0, length),
    df: false,
  })
}

function sizes(f: Family): PacketCase[] {
  const n = numbers(f)
  const c = at(f.client, PORT)
  const mtu = 1500 - (f.v4 ? 50 : 70)
  const big = udp(c, at(f.node, NODE_PORT), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48) + 1) })
  const fits = udp(c, at(f.node, NODE_PORT), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48)) })
  const far = { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] }
  const huge = (df: boolean, bytes = 1600) => udp(at(f.pod, PORT), at(f.remotePod, 80), { payload: new Uint8Array(bytes), df })
  const expiring = tcp(at(f.pod, PORT), at(f.remotePod, 80), { flags: 'S', ttl: 1 })
  return [
    {
      name: `${f.name}: too big for the tunnel: the entry node says so, with the size that fits`,
      given: far,
      steps: [
        {
          say: 'one byte too many',
          through: 'from_host',
          packet: big,
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: big, to: f.client, kind: n.tooBig, mtu }),
        },
        { say: 'just fits', through: 'from_host', packet: fits, action: 'redirect' },
        {
          say: 'known flow, one byte too many',
          through: 'from_host',
          packet: big,
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: big, to: f.client, kind: n.tooBig, mtu }),
        },
      ],
    },
    {
      name: `${f.name}: too big for the way out of a device: IPv4 that may be cut is left to the kernel, the rest is answered`,
      given: {},
      steps: [
        {
          say: 'first packet',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), at(f.remotePod, 80), { payload: 'x' }),
          action: 'redirect',
        },
        ...(f.v4 ? [{ say: 'may be cut', through: 'from_workload', packet: huge(false), action: 'pass', out: 'same' } as const] : []),
        {
          say: 'may not be cut',
          through: 'from_workload',
          packet: huge(true),
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: huge(true), to: f.pod, kind: n.tooBig, mtu: 1500 }),
        },
      ],
    },
    {
      name: `${f.name}: longer than its device can receive: many segments in one, which fit`,
      given: {},
      steps: [{ say: 'segments', through: 'from_workload', packet: huge(true, 2100), action: 'redirect' }],
    },
    {
      name: `${f.name}: hop limit reached: time exceeded from this node`,
      given: far,
      steps: [
        {
          say: 'first packet',
          through: 'from_workload',
          packet: expiring,
          action: 'redirect',
          reason: 'DROP_TTL',
          out: error(f, { packet: expiring, to: f.pod, kind: n.expired }),
        },
        {
          say: 'at a node port',
          through: 'from_host',
          packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S', ttl: 1 }),
          action: 'redirect',
          reason: 'DROP_TTL',
          out: error(f, { packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S', ttl: 1 }), to: f.client, kind: n.expired }),
        },
        {
          say: 'to the node itself it may be 1',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.node, 10250), { flags: 'S', ttl: 1 }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: no backend: refused at once`,
      given: {},
      steps: [
        {
          say: 'TCP from a pod',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: error(f, { packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }), to: f.pod, kind: n.unreachable }),
        },
        {
          say: 'UDP from outside',
          through: 'from_host',
          packet: udp(c, at(f.node, NODE_PORT), { payload: 'x' }),
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: error(f, { packet: udp(c, at(f.node, NODE_PORT), { payload: 'x' }), to: f.client, kind: n.unreachable }),
        },
      ],
    },
  ]
}

function icmpCases(f: Family): PacketCase[] {
  const n = numbers(f)
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  const seen = udp(c, back, { payload: 'hello', ttl: 63 })
  const meant = udp(c, front, { payload: 'hello', ttl: 63 })
  const bodyOf = (frame: Uint8Array, original: Uint8Array) => quoteAs(f, frame, original)
  return [
    {
      name: `${f.name}: ping pod to pod, and from outside`,
      given: {},
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: n.echo, word: 0x1234_0001 }),
          action: 'redirect',
          out: icmp(f.pod, f.secondPod, { type: n.echo, word: 0x1234_0001, ttl: 63 }),
        },
        {
          say: 'reply',
          through: 'from_workload',
          packet: icmp(f.secondPod, f.pod, { type: n.reply, word: 0x1234_0001 }),
          action: 'redirect',
          out: icmp(f.secondPod, f.pod, { type: n.reply, word: 0x1234_0001, ttl: 63 }),
        },
        {
          say: 'request from outside',
          through: 'from_host',
          packet: icmp(f.client, f.pod, { type: n.echo, word: 0x1235_0001 }),
          action: 'redirect',
          out: icmp(f.client, f.pod, { type: n.echo, word: 0x1235_0001, ttl: 63 }),
        },
        {
          say: 'request to the node',
          through: 'from_host',
          packet: icmp(f.client, f.node, { type: n.echo, word: 0x1236_0001 }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: a backend's port unreachable is shown as the service's`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'hello' }), action: 'redirect', out: seen },
        {
          say: 'port unreachable',
          through: 'from_workload',
          packet: icmp(f.pod, f.client, { type: n.unreachable[0], code: n.unreachable[1], body: l3(seen) }),
          action: 'redirect',
          out: icmp(f.node, f.client, { type: n.unreachable[0], code: n.unreachable[1], ttl: 63, body: bodyOf(seen, meant) }),
        },
      ],
    },
    {
      name: `${f.name}: a router's error about a service's answer reaches the backend as its own`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'hello' }), action: 'redirect', out: seen },
        {
          say: 'answer',
          through: 'from_workload',
          packet: udp(back, c, { payload: 'world' }),
          action: 'redirect',
          out: udp(front, c, { payload: 'world', ttl: 63 }),
        },
        {
          say: 'too big, from a router on the way',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, {
            type: n.tooBig[0],
            code: n.tooBig[1],
            word: 1400,
            body: l3(udp(front, c, { payload: 'world', ttl: 60 })),
          }),
          action: 'redirect',
          out: icmp(f.stranger, f.pod, {
            type: n.tooBig[0],
            code: n.tooBig[1],
            word: 1400,
            ttl: 63,
            body: quoteAs(f, udp(front, c, { payload: 'world', ttl: 60 }), udp(back, c, { payload: 'world', ttl: 60 })),
          }),
        },
      ],
    },
    {
      name: `${f.name}: errors about flows we do not know are the kernel's`,
      given: {},
      steps: [
        {
          say: 'unreachable',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, { type: n.unreachable[0], code: 1, body: l3(udp(front, c, {})) }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
  ]
}

/** `original` as an error quotes it once `frame`'s quote was translated: the quoted packet's own L4 checksum is left as it was. */
function quoteAs(f: Family, frame: Uint8Array, original: Uint8Array): Uint8Array {
  const quoted = l3(original).slice()
  const was = l3(frame)
  const csum = (f.v4 ? 20 : 40) + 6
  quoted.set(was.subarray(csum, csum + 2), csum)
  return quoted
}

function fragments(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const payload = new Uint8Array(64).map((_, i) => i)
  const part = (to: string, fragment: { offset: number; more: boolean }, ttl = 64) => udp(c, to, { payload, id: 77, fragment, ttl })
  // the builder cuts the body of the whole datagram at `offset`; the first part is cut short here
  const first = (to: string, ttl = 64) => cut(f, part(to, { offset: 0, more: true }, ttl), 24)
  return [
    {
      name: `${f.name}: fragments of a service's datagram follow the first`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'first', through: 'from_host', packet: first(at(f.node, NODE_PORT)), action: 'redirect', out: first(at(f.pod, 8080), 63) },
        {
          say: 'last',
          through: 'from_host',
          packet: part(at(f.node, NODE_PORT), { offset: 24, more: false }),
          action: 'redirect',
          out: part(at(f.pod, 8080), { offset: 24, more: false }, 63),
        },
      ],
    },
    {
      name: `${f.name}: a fragment without its first is dropped`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'last',
          through: 'from_host',
          packet: part(at(f.node, NODE_PORT), { offset: 24, more: false }),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
      ],
    },
  ]
}

/** Shortens a first fragment to `bytes` of body, with its lengths and header checksum right. */
function cut(f: Family, frame: Uint8Array, bytes: number): Uint8Array {
  const head = f.v4 ? 34 : 14 + 40 + 8
  const out = frame.slice(0, head + bytes)
  const view = new DataView(out.buffer)
  if (!f.v4) {
    view.setUint16(18, 8 + bytes)
    return out
  }
  view.setUint16(16, 20 + bytes)
  view.setUint16(24, 0)
  let sum = 0
  for (let i = 14; i < 34; i += 2) sum += view.getUint16(i)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  view.setUint16(24, ~sum & 0xffff)
  return out
}

function flowRules(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  const open = [
    { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, window: 100 }), action: 'redirect' },
    {
      say: 'SYN-ACK',
      through: 'from_workload',
      packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, window: 100 }),
      action: 'redirect',
    },
    { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
  ] as const
  return [
    {
      name: `${f.name}: a RST is believed only inside the window`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        ...open,
        {
          say: 'blind RST from outside',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'R', seq: 900_000 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        {
          say: 'blind RST from the backend',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'R', seq: 900_000 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        {
          say: 'the flow lives on',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001 }),
          action: 'redirect',
          out: tcp(c, back, { flags: 'A', seq: 1001, ack: 5001, ttl: 63 }),
        },
        {
          say: 'RST inside',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'R', seq: 1001 }),
          action: 'redirect',
          out: tcp(c, back, { flags: 'R', seq: 1001, ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: the window a RST must lie in is scaled as the SYN said`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, mss: 1460, wscale: 7 }), action: 'redirect' },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, mss: 1460, wscale: 7 }),
          action: 'redirect',
        },
        { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
        {
          say: 'beyond',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'R', seq: 5001 + 100 * 128 + 1 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        { say: 'within', through: 'from_workload', packet: tcp(back, c, { flags: 'R', seq: 5001 + 100 * 128 }), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: two flows that look alike to the backend: the second gets another source port`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'straight to the backend',
          through: 'from_workload',
          packet: tcp(at(f.secondPod, PORT), back, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.secondPod, PORT), back, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'same port by the service',
          through: 'from_workload',
          packet: tcp(at(f.secondPod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
        },
        {
          say: 'answer to the first',
          through: 'from_workload',
          packet: tcp(back, at(f.secondPod, PORT), { flags: 'SA', ack: 1001 }),
          action: 'redirect',
          out: tcp(back, at(f.secondPod, PORT), { flags: 'SA', ack: 1001, ttl: 63 }),
        },
      ],
    },
  ]
}

function neighbours(): PacketCase[] {
  const mac = devices.pod.mac
  const podMac = '02:00:00:00:aa:01'
  const lo = '00:00:00:00:00:00'
  const request = (target: string) =>
    arp({ operation: 1, senderMac: podMac, sender: '10.10.1.5', targetMac: lo, target, macs: { src: podMac, dst: 'ff:ff:ff:ff:ff:ff' } })
  const solicit = (target: string) =>
    icmp('fd00:10:1::5', `ff02::1:ff00:${target.slice(-1)}`, {
      type: 135,
      ttl: 255,
      body: concat([addrBytes(parseAddr(target)), Uint8Array.from([1, 1]), macBytes(podMac)]),
      macs: { src: podMac, dst: '33:33:ff:00:00:01' },
    })
  return [
    {
      name: "IPv4: ARP for the pods' gateway is answered, other ARP is the kernel's",
      given: {},
      steps: [
        {
          say: 'gateway',
          through: 'from_workload',
          packet: request('169.254.1.1'),
          action: 'redirect',
          macs: true,
          out: arp({
            operation: 2,
            senderMac: mac,
            sender: '169.254.1.1',
            targetMac: podMac,
            target: '10.10.1.5',
            macs: { src: mac, dst: podMac },
          }),
        },
        { say: 'anyone else', through: 'from_workload', packet: request('10.10.1.9'), action: 'pass', out: 'same' },
        { say: 'on the wire', through: 'from_host', packet: request('169.254.1.1'), action: 'pass', out: 'same' },
      ],
    },
    {
      name: "IPv6: neighbour solicitation for the pods' gateway is answered, others are the kernel's",
      given: {},
      steps: [
        {
          say: 'gateway',
          through: 'from_workload',
          packet: solicit('fe80::1'),
          action: 'redirect',
          macs: true,
          out: icmp('fe80::1', 'fd00:10:1::5', {
            type: 136,
            word: 0x6000_0000,
            ttl: 255,
            body: concat([addrBytes(parseAddr('fe80::1')), Uint8Array.from([2, 1]), macBytes(mac)]),
            macs: { src: mac, dst: podMac },
          }),
        },
        { say: 'anyone else', through: 'from_workload', packet: solicit('fe80::2'), action: 'pass', out: 'same' },
      ],
    },
  ]
}

function damage(f: Family): PacketCase[] {
  const whole = tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' })
  const short = whole.slice(0, whole.length - 8)
  return [
    {
      name: `${f.name}: headers cut short are dropped`,
      given: {},
      steps: [{ say: 'TCP header cut', through: 'from_host', packet: short, action: 'drop', reason: 'DROP_SHORT' }],
    },
    {
      name: `${f.name}: options and extension headers are read`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S', options: Uint8Array.from([1, 1, 1, 0]), extensions: 2 }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), at(f.pod, 8080), { flags: 'S', ttl: 63, options: Uint8Array.from([1, 1, 1, 0]), extensions: 2 }),
        },
      ],
    },
  ]
}

const mapped: PacketCase = {
  name: 'IPv6: a mapped address on the wire is dropped',
  given: {},
  steps: [{ say: 'mapped source', through: 'from_host', packet: mappedSource(), action: 'drop', reason: 'DROP_MAPPED_ADDRESS' }],
}

function mappedSource(): Uint8Array {
  const frame = tcp('[fd00:50::100]:41000', '[fd00:50::1]:30080', { flags: 'S' })
  frame.set(addrBytes(parseAddr('192.168.50.100')), 14 + 8)
  return frame
}

const tunnelled: PacketCase = {
  name: 'tunnel: inner family unlike outer is dropped',
  given: {},
  steps: [{ say: 'IPv6 in IPv4', through: 'from_host', packet: mixed(), action: 'drop', reason: 'DROP_TUNNEL_HEADER' }],
}

function mixed(): Uint8Array {
  const frame = tunnel('192.168.50.2', '192.168.50.1', { inner: tcp('[fd00:50::100]:1', '[fd00:10:1::5]:2'), vni: VNI, sport: 50000 })
  frame.set([0x86, 0xdd], 14 + 20 + 8 + 8 + 12)
  return frame
}

export const cases: readonly PacketCase[] = [
  ...families.flatMap((f) => [...sizes(f), ...icmpCases(f), ...fragments(f), ...flowRules(f), ...damage(f)]),
  ...neighbours(),
  mapped,
  tunnelled,
]
