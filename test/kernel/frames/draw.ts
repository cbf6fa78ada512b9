// SPDX-License-Identifier: Apache-2.0
/** Draws sequences of frames from a seed: policies and services, a few flows, and frames that are about those more
 * often than not. Layer: test. */
import { addrBytes, isV4, isWithin, parseAddr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ICMP, ICMPV6, SCTP, TCP, UDP } from '#lib/policy/packet.ts'
import { arp, concat } from '../../../testkit/packets/packet.ts'
import type { Given, ProgramName } from '../../../testkit/packets/case.ts'
import { NAT_PORT, NODE_PORT, VNI, families } from '../../../testkit/packets/cluster.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { TO_ALL, TO_NODE, V4_TYPE, V6_TYPE, ethernet, message, packet, transport, vxlan, word } from './bytes.ts'
import type { Flow, Shape } from './bytes.ts'
import { Dice } from './dice.ts'
import { givenOf } from './given.ts'
import { extensionsOf, fragmentOf, optionsOf, tagsOf } from './headers.ts'
import { LINK, LOOPBACK, NODE, UNSPECIFIED } from './places.ts'

export interface Sent {
  readonly through: ProgramName
  readonly frame: Uint8Array
  /** as plain as can be, and the first of its sequence */
  readonly isPlain?: true
}

export interface Sequence {
  readonly given: Given
  readonly frames: readonly Sent[]
}

const TUNNEL_PORT = 4789
/** what the node itself sends is from these */
const SENT_FROM = [...NODE, ...LOOPBACK]
const OF_A_LINK = [...LINK, ...UNSPECIFIED]
const PORTS = [80, 80, 80, 81, 81, 22, 8080, NODE_PORT, TUNNEL_PORT, TUNNEL_PORT, NAT_PORT, 546, 0, 65535]
const CLIENT_PORTS = [42_000, 42_000, 42_001, 80, TUNNEL_PORT, 22, NAT_PORT]
const V4_ODD = ['127.0.0.1', '0.0.0.0', '224.0.0.5', '255.255.255.255', '192.168.50.255', '169.254.7.7', '240.0.0.1', '10.10.1.77']
const V6_ODD = [
  '::1',
  '::',
  'ff02::1',
  'ff02::2',
  'ff02::16',
  'ff05::2',
  'fe80::5',
  'fe80::6',
  'fd00:10:1::77',
  '::ffff:10.10.1.5',
  '::ffff:10.10.2.5',
]

export function sequenceOf(seed: number, length: number): Sequence {
  const dice = new Dice(seed)
  const given = givenOf(dice)
  const draw = new Draw(dice)
  return { given, frames: [draw.plain(), ...Array.from({ length: length - 1 }, () => draw.frame())] }
}

/** The frames of one sequence: they share flows, and ids of fragments. */
class Draw {
  readonly #dice: Dice
  readonly #family: Family
  readonly #flows: readonly Flow[]

  constructor(dice: Dice) {
    this.#dice = dice
    this.#family = dice.one(families)
    this.#flows = Array.from({ length: 4 }, () => this.#flow())
  }

  plain(): Sent {
    const f = this.#family
    const [src, dst, through] = this.#dice.one([
      [f.secondPod, f.pod, 'from_workload'],
      [f.pod, f.secondPod, 'from_workload'],
      [f.client, f.pod, 'from_host'],
      [f.remotePod, f.pod, 'from_host'],
      [f.pod, f.remotePod, 'from_workload'],
    ] as const)
    const flow = {
      v4: f.v4,
      src: parseAddr(src),
      dst: parseAddr(dst),
      protocol: this.#dice.one([TCP, UDP]),
      sport: 42_000,
      dport: this.#dice.one([80, 81, 8080]),
    }
    return { through, frame: framed(flow, packet(flow, transport(flow), { hop: 64 })), isPlain: true }
  }

  frame(): Sent {
    const dice = this.#dice
    const flow = dice.chance(80) ? this.#turned(dice.one(this.#flows)) : this.#flow()
    const through = this.#through(flow)
    if (dice.chance(2)) return { through, frame: this.#arp() }
    const [protocol, l4] = this.#content(flow)
    const shape = this.#shape(flow, l4.length)
    // the kernel takes one off what it forwards to where packets leave
    const isForwarded = through.startsWith('to') && !SENT_FROM.includes(flow.src) && !isWithin(OF_A_LINK, flow.src)
    const hop = isForwarded ? Math.min(shape.hop, 254) : shape.hop
    const inner = packet({ ...flow, protocol }, l4, { ...shape, hop })
    const type = typeOf(flow)
    if (through === 'from_host' && dice.chance(25)) return { through, frame: this.#tunnelled(ethernet(type, inner)) }
    const isTagged = through.startsWith('from') && dice.chance(5)
    const to = through === 'from_host' && dice.chance(5) ? TO_ALL : TO_NODE
    return { through, frame: ethernet(type, inner, { to, tags: isTagged ? tagsOf(dice) : [] }) }
  }

  #turned(flow: Flow): Flow {
    const { src, dst, sport, dport } = flow
    const turned = this.#dice.chance(35) ? { ...flow, src: dst, dst: src, sport: dport, dport: sport } : flow
    return this.#dice.chance(10) ? { ...turned, dport: this.#dice.one(PORTS) } : turned
  }

  #flow(): Flow {
    const dice = this.#dice
    const f = dice.chance(92) ? this.#family : dice.one(families)
    const odd = f.v4 ? V4_ODD : V6_ODD
    const pods = [f.pod, f.pod, f.secondPod, f.maskedPod, f.remotePod, f.overlayPod, f.elsewherePod, f.routedPod]
    const others = [f.node, f.quietOwn, f.otherNode, f.thirdNode, f.stranger, f.client, f.client, f.directClient, f.lost]
    const src = dice.weighted([
      [6, () => dice.one(pods)],
      [4, () => dice.one(others)],
      [1, () => dice.one(odd)],
    ])
    const dst = dice.weighted([
      [7, () => dice.one(pods)],
      [3, () => dice.one(others)],
      [1, () => dice.one([f.vip, f.bareVip, f.vip, f.gateway])],
      [1, () => dice.one(odd)],
    ])
    const protocol = dice.one([TCP, TCP, UDP, UDP, UDP, SCTP, 33, 136, f.v4 ? ICMP : ICMPV6, 47, 2, 50])
    return { v4: f.v4, src: address(src), dst: address(dst), protocol, sport: dice.one(CLIENT_PORTS), dport: dice.one(PORTS) }
  }

  /** Mostly where such a frame would come from. */
  #through({ src, dst }: Flow): ProgramName {
    const f = families.find(({ node }) => isV4(parseAddr(node)) === isV4(src)) ?? this.#family
    const pods = [f.pod, f.secondPod, f.maskedPod, f.routedPod, f.elsewherePod].map(parseAddr)
    // where packets leave there are none of pods but those that have entered
    const isPods = pods.includes(src)
    const likely: ProgramName = isPods
      ? 'from_workload'
      : [f.node, f.quietOwn].map(parseAddr).includes(src)
        ? pods.includes(dst)
          ? 'to_workload'
          : 'to_host'
        : 'from_host'
    if (this.#dice.chance(80)) return likely
    return this.#dice.one([
      'from_workload',
      'from_host',
      'from_host',
      ...(isPods ? [] : [pods.includes(dst) ? ('to_workload' as const) : ('to_host' as const)]),
    ])
  }

  #content(flow: Flow): readonly [protocol: number, l4: Uint8Array] {
    const dice = this.#dice
    const icmp = flow.v4 ? ICMP : ICMPV6
    if (flow.protocol === icmp || dice.chance(12)) return [icmp, this.#message(flow)]
    const isForged = flow.dport === TUNNEL_PORT && dice.chance(50)
    const payload: Uint8Array = isForged ? this.#forged() : new Uint8Array(dice.one([0, 8, 12, 40, 64]))
    return [flow.protocol, transport(flow, { flags: dice.one([2, 2, 2, 16, 18, 17, 4, 20, 0]), payload })]
  }

  #message(flow: Flow): Uint8Array {
    const dice = this.#dice
    const { v4 } = flow
    const code = dice.one([0, 0, 0, 0, 1, 4])
    return dice.weighted([
      [
        5,
        () =>
          message(flow, {
            type: dice.one(v4 ? [8, 8, 0] : [128, 128, 129]),
            code,
            rest: word(dice.one([7, 8]), 1),
            body: new Uint8Array(8),
          }),
      ],
      [
        5,
        () =>
          message(flow, {
            type: dice.one(v4 ? [3, 3, 11, 12, 5, 4] : [1, 1, 2, 3, 4]),
            code,
            rest: word(0, 1400),
            body: this.#quote(flow),
          }),
      ],
      [3, () => message(flow, { type: v4 ? dice.below(20) : 130 + dice.below(14), code, rest: word(0x6000, 0), body: this.#target() })],
    ])
  }

  /** What a neighbour speaks of. */
  #target(): Uint8Array {
    const f = families.find(({ v4 }) => !v4) ?? this.#family
    const target = this.#dice.one([f.pod, f.secondPod, f.elsewherePod, f.node, 'fe80::5', 'fe80::1'])
    return concat([addrBytes(parseAddr(target)), Uint8Array.from([1, 1, 2, 0, 0, 0, 0, 1])])
  }

  /** A packet that the receiver of the error, or another, has sent, or has not. */
  #quote(flow: Flow): Uint8Array {
    const dice = this.#dice
    const about = dice.chance(60) ? dice.one(this.#flows) : { ...this.#turned(dice.one(this.#flows)), v4: flow.v4, src: flow.dst }
    const l4 = transport(about, { flags: 2 })
    const quoted = packet(about, l4, this.#shape(about, l4.length))
    return quoted.subarray(0, dice.one([quoted.length, quoted.length, 28, 48, 20]))
  }

  #shape({ protocol, v4 }: Flow, length: number): Shape {
    const dice = this.#dice
    const hop = dice.one(protocol === ICMPV6 ? [255, 255, 255, 64, 1] : [64, 64, 64, 255, 2, 1])
    const chained = !v4 && dice.chance(30)
    const wrong = dice.weighted<Partial<Shape>>([
      [30, () => ({})],
      [1, () => ({ cut: 1 + dice.below(30) })],
      [1, () => ({ lie: dice.one([-8, -20, 8, 100]) })],
      [1, () => ({ padding: dice.below(20) })],
    ])
    return {
      hop,
      ...(v4 && dice.chance(10) ? { options: optionsOf(dice) } : {}),
      ...(chained ? { extensions: extensionsOf(dice) } : {}),
      ...(chained && dice.chance(30) ? { before: extensionsOf(dice) } : {}),
      ...(dice.chance(25) ? { fragment: fragmentOf(dice, length) } : {}),
      ...wrong,
    }
  }

  /** From a node, or from a host that pretends to be one. */
  #tunnelled(inner: Uint8Array): Uint8Array {
    const dice = this.#dice
    const f = this.#family
    const src = dice.one([f.otherNode, f.otherNode, f.thirdNode, f.stranger, f.client, f.remotePod, ...f.alikeNodes])
    const flow = {
      v4: f.v4,
      src: parseAddr(src),
      dst: parseAddr(dice.one([f.node, f.node, f.node, f.quietOwn])),
      protocol: UDP,
      sport: 45_000,
      dport: TUNNEL_PORT,
    }
    const vni = dice.one([VNI, VNI, VNI, VNI, VNI + 1, 0])
    const payload = vxlan(vni, dice.chance(15) ? withOrigin(inner, f) : inner, dice.one([8, 8, 8, 8, 8, 0]))
    return framed(flow, packet(flow, transport(flow, { payload }), { hop: 64 }))
  }

  #forged(): Uint8Array {
    const flow = this.#turned(this.#dice.one(this.#flows))
    return vxlan(VNI, ethernet(typeOf(flow), packet(flow, transport(flow), { hop: 64 })))
  }

  #arp(): Uint8Array {
    const dice = this.#dice
    const [f] = families
    const any = [f?.pod, f?.secondPod, f?.elsewherePod, f?.node, f?.gateway, '0.0.0.0'].flatMap((one) => one ?? [])
    const macs = { src: '02:00:00:00:aa:01', dst: 'ff:ff:ff:ff:ff:ff' }
    return arp({
      operation: dice.one([1, 2]),
      senderMac: macs.src,
      sender: dice.one(any),
      targetMac: macs.dst,
      target: dice.one(any),
      macs,
    })
  }
}

/** Whom the client meant, between the inner Ethernet header and the packet. */
function withOrigin(inner: Uint8Array, f: Family): Uint8Array {
  const origin = concat([addrBytes(parseAddr(f.vip)), word(80, ((inner[12] ?? 0) << 8) | (inner[13] ?? 0))])
  return concat([inner.subarray(0, 12), Uint8Array.from([0x88, 0xb5]), origin, inner.subarray(14)])
}

/** Of IPv4 addresses in IPv6, which have no text of their own, the former. */
function address(text: string): Addr {
  return parseAddr(text.replace('::ffff:', ''))
}

function typeOf({ v4 }: Flow): number {
  return v4 ? V4_TYPE : V6_TYPE
}

function framed(flow: Flow, bytes: Uint8Array): Uint8Array {
  return ethernet(typeOf(flow), bytes)
}
