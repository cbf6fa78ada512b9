// SPDX-License-Identifier: Apache-2.0
/** ICMP errors about the tunnel's own packets: a path between nodes that is narrower than their devices.
 * Layer: test. */
import { icmp, l3, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { error, numbers } from './errors.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 48_000
const NARROW = 1400
const MINUTES_11 = 660_000

interface Ends {
  readonly src: string
  readonly sport: number
  readonly dst: string
  readonly dport: number
}

/** A family's packets, each of a flow with these ends. */
function packetsOf(f: Family) {
  const heads = f.v4 ? 28 : 48
  const big = ({ src, sport, dst, dport }: Ends, ttl = 64) =>
    udp(at(src, sport), at(dst, dport), { payload: new Uint8Array(1400 - heads), ttl })
  const outer = (ends: Ends, inner: Uint8Array, { to = f.otherNode, vni = VNI, port = 4789 } = {}) =>
    tunnel(f.node, to, { inner, vni, port, sport: tunnelPort(ends) })
  /** the same as it goes to the other node */
  const sent = (ends: Ends, more?: { readonly to?: string; readonly vni?: number; readonly port?: number }) =>
    outer(ends, big(ends, 63), more)
  return { big, sent, outer }
}

/** What a router says of a packet in the tunnel. */
function told(
  f: Family,
  about: Uint8Array,
  more: { readonly mtu?: number; readonly from?: string; readonly kind?: [number, number]; readonly quotes?: number } = {},
): Uint8Array {
  const { mtu = NARROW, from = f.stranger, kind = numbers(f).tooBig, quotes } = more
  return icmp(from, f.node, { type: kind[0], code: kind[1], word: mtu, body: l3(about).subarray(0, quotes) })
}

function stepsOf(f: Family) {
  const overhead = f.v4 ? 50 : 70
  const passes = (say: string, packet: Uint8Array, out: Uint8Array): Step => ({
    say,
    through: 'from_workload',
    packet,
    action: 'redirect',
    out,
    age: A_WHILE,
  })
  const refused = (
    say: string,
    packet: Uint8Array,
    { path = NARROW, through = 'from_workload', ...answer }: { to: string; from?: string; path?: number; through?: Step['through'] },
  ): Step => ({
    ...passes(say, packet, error(f, { packet, kind: numbers(f).tooBig, mtu: path - overhead, ...answer })),
    through,
    reason: 'DROP_TOO_BIG',
  })
  const hears = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_host', packet, action: 'pass', out: 'same' })
  return { passes, refused, hears }
}

function learned(f: Family): PacketCase[] {
  const { big, sent, outer } = packetsOf(f)
  const { passes, refused, hears } = stepsOf(f)
  const ends = { src: f.pod, sport: PORT, dst: f.overlayPod, dport: 80 }
  const client = { src: f.client, sport: PORT, dst: f.vip, dport: 80 }
  const translated = { ...client, dst: f.remotePod, dport: 8080 }
  const syn = (mss: number, ttl: number) => tcp(at(f.pod, PORT), at(f.overlayPod, 80), { flags: 'S', mss, ttl })
  const least = f.v4 ? 552 + 50 : 1280 + 70
  const toThird = outer(client, big(translated, 63), { to: f.thirdNode })
  return [
    {
      name: `${f.name}: a router says that the tunnel's packets to a node are too long: senders hear it from us, for ten minutes`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.thirdNode }] },
      steps: [
        passes('the devices let it pass', big(ends), sent(ends)),
        hears('the router tells', told(f, sent(ends))),
        refused('too long', big(ends), { to: f.pod }),
        passes('a connection is told at once', syn(1460, 64), outer(ends, syn(NARROW - (f.v4 ? 90 : 130), 63))),
        { ...passes('the path to another node is its own', big(client), toThird), through: 'from_host' },
        hears('one that knows of more is no news', told(f, sent(ends), { mtu: 1450 })),
        refused('still too long', big(ends), { to: f.pod }),
        hears('it is narrower', told(f, sent(ends), { mtu: least + 1 })),
        refused('too long for that', big(ends), { to: f.pod, path: least + 1 }),
        { ...passes('it is tried again', big(ends), sent(ends)), age: MINUTES_11 },
      ],
    },
    {
      name: `${f.name}: no error makes the tunnel's packets shorter than what every host takes`,
      given: {},
      steps: [
        passes('the devices let it pass', big(ends), sent(ends)),
        hears('a forged one', told(f, sent(ends), { mtu: 68 })),
        refused('too long', big(ends), { to: f.pod, path: least }),
      ],
    },
    {
      name: `${f.name}: clients of services hear of a narrow path from the service`,
      given: { backends: [{ addr: f.remotePod, port: 8080, node: f.thirdNode }] },
      steps: [
        { ...passes('the devices let it pass', big(client), toThird), through: 'from_host' },
        hears('the router tells of what left', told(f, toThird)),
        refused('too long', big(client), { to: f.client, from: f.vip, through: 'from_host' }),
      ],
    },
    {
      name: `${f.name}: backends hear of a narrow path to the node that was asked`,
      given: {},
      steps: [answers(f), hears('the router tells', told(f, sent(backOf(f)))), refused('too long', big(backOf(f)), { to: f.pod })],
    },
  ]
}

function backOf(f: Family): Ends {
  return { src: f.pod, sport: 8080, dst: f.client, dport: PORT }
}

/** A datagram by another node. */
function answers(f: Family): Step {
  const inner = udp(at(f.client, PORT), at(f.pod, 8080), { ttl: 63 })
  const packet = tunnel(f.otherNode, f.node, { inner, vni: VNI, sport: 50_000 })
  return { say: 'datagram by the node that was asked', through: 'from_host', packet, action: 'redirect', out: inner }
}

function believed(f: Family): PacketCase {
  const { big, sent, outer } = packetsOf(f)
  const { passes, hears } = stepsOf(f)
  const client = { src: f.client, sport: PORT, dst: f.vip, dport: 80 }
  const toThird = outer(client, big({ ...client, dst: f.remotePod, dport: 8080 }, 63), { to: f.thirdNode })
  const ends = { src: f.pod, sport: PORT, dst: f.overlayPod, dport: 80 }
  const spoofed = { action: 'drop', reason: 'DROP_SPOOFED' } as const
  const inner = told(f, sent(ends))
  const errors: readonly Step[] = [
    hears('about a flow that is not there', told(f, sent({ ...ends, sport: PORT + 1 }))),
    hears('with another VNI', told(f, sent(ends, { vni: VNI + 1 }))),
    hears('about another port', told(f, sent(ends, { port: 4790 }))),
    hears("about a node that is not the flow's", told(f, sent(ends, { to: f.thirdNode }))),
    hears('about no size', told(f, sent(ends), { kind: f.v4 ? [3, 1] : [1, 0] })),
    hears('without the packet inside', told(f, sent(ends), { quotes: (f.v4 ? 20 : 40) + 8 + 8 + 14 })),
    { say: 'as this node', through: 'from_host', packet: told(f, sent(ends), { from: f.quietOwn }), ...spoofed },
    { say: 'of a pod', through: 'from_workload', packet: told(f, sent(ends), { from: f.pod }), ...spoofed },
    { ...hears('in the tunnel', tunnel(f.otherNode, f.node, { inner, vni: VNI, sport: 50_000 })), out: inner, marked: 0 },
  ]
  return {
    name: `${f.name}: of paths only errors are believed that quote a flow's packet as it left in the tunnel`,
    given: { backends: [{ addr: f.remotePod, port: 8080, node: f.thirdNode }] },
    steps: [
      passes('the devices let it pass', big(ends), sent(ends)),
      ...errors.flatMap((step): Step[] => [step, passes(`it does after one ${step.say}`, big(ends), sent(ends))]),
      { ...passes('and to the node of which one told', big(client), toThird), through: 'from_host' },
    ],
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...learned(f), believed(f)])
