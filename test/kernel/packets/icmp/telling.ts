// SPDX-License-Identifier: Apache-2.0
/** Whose ICMP errors about a flow are believed: of pods, its other end's alone. Layer: test. */
import { icmp, l3, plain, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { HEADERS, chained, type Header } from '../headers/chain.ts'
import { cut } from '../headers/cut.ts'
import { numbers } from './errors.ts'
import { DENIED, policy } from '../policy/policies.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NAT_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 45_000
const REFUSED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
/** Policy lets nothing in to the pod that asks. */
const CLOSED = [policy('closed', { of: 'pod', ingress: [] })]

/** The errors that end a flow, or make its packets small. */
function kindsOf(f: Family): readonly { readonly say: string; readonly type: number; readonly code: number; readonly word: number }[] {
  const n = numbers(f)
  return [
    { say: 'unreachable', type: n.unreachable[0], code: n.unreachable[1], word: 0 },
    { say: 'too big', type: n.tooBig[0], code: n.tooBig[1], word: 600 },
    { say: 'expired', type: n.expired[0], code: n.expired[1], word: 0 },
    { say: 'parameter problem', type: f.v4 ? 12 : 4, code: 0, word: 0 },
  ]
}

interface Told {
  readonly from: string
  readonly to: string
  readonly about: Uint8Array
  /** of {@link kindsOf} */
  readonly kind?: number
}

function told(f: Family, { from, to, about, kind = 0 }: Told): Uint8Array {
  const { type, code, word } = kindsOf(f)[kind] ?? { type: 3, code: 3, word: 0 }
  return icmp(from, to, { type, code, word, body: l3(about) })
}

function ofPods(f: Family): PacketCase[] {
  const n = numbers(f)
  const [asker, server, outside] = [at(f.pod, PORT), at(f.secondPod, 80), at(f.client, 443)]
  const flows: readonly (readonly [say: string, packet: Uint8Array])[] = [
    ['datagram', udp(asker, server)],
    ['SYN', tcp(asker, server, { flags: 'S' })],
    ['ping', icmp(f.pod, f.secondPod, { type: n.echo, word: 0x0606_0001 })],
    ['datagram to the outside', udp(asker, outside)],
    ['SYN to the outside', tcp(asker, outside, { flags: 'S' })],
  ]
  const opened = flows.map(([say, packet]): Step => ({ say, through: 'from_workload', packet, action: 'redirect' }))
  const sends = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, ...REFUSED })
  const masked = at(f.maskedPod, PORT)
  const stub = l3(udp(asker, server)).subarray(0, f.v4 ? 22 : 42)
  return [
    {
      name: `${f.name}: a pod's error about another pods' flow goes nowhere, whether policy lets the pod in or not`,
      given: {},
      steps: [false, true].flatMap((isClosed): Step[] => [
        ...opened.map((step) => ({ ...step, ...(isClosed ? { policies: CLOSED } : {}) })),
        ...kindsOf(f).flatMap(({ say }, kind) =>
          flows.map(([what, about]) => sends(`${say}, about a ${what}`, told(f, { from: f.maskedPod, to: f.pod, about, kind }))),
        ),
      ]),
    },
    {
      name: `${f.name}: the flow's other end tells, past policy`,
      given: { policies: CLOSED },
      steps: [
        ...opened.slice(0, 3),
        ...kindsOf(f).flatMap(({ say, ...kind }) =>
          flows.slice(0, 3).map(([what, about]): Step => {
            const error = (ttl: number) => icmp(f.secondPod, f.pod, { ...kind, body: l3(about), ttl })
            return { say: `${say}, about a ${what}`, through: 'from_workload', packet: error(64), action: 'redirect', out: error(63) }
          }),
        ),
      ],
    },
    {
      name: `${f.name}: a pod's error about its node's own flow, of which the programs know nothing, goes nowhere`,
      given: {},
      steps: [
        sends('about TCP', told(f, { from: f.pod, to: f.node, about: tcp(at(f.node, PORT), outside, { flags: 'S' }) })),
        sends('too big', told(f, { from: f.pod, to: f.node, about: udp(at(f.node, PORT), outside), kind: 1 })),
      ],
    },
    {
      name: `${f.name}: a pod's error about a flow that was translated goes nowhere by any of its addresses`,
      given: { backends: [{ addr: f.secondPod, port: 8080 }] },
      steps: [
        { say: 'to a service', through: 'from_workload', packet: udp(asker, at(f.vip, 80)), action: 'redirect' },
        { say: 'to the outside', through: 'from_workload', packet: udp(masked, outside), action: 'redirect' },
        sends('as before', told(f, { from: f.maskedPod, to: f.pod, about: udp(asker, at(f.vip, 80)) })),
        sends('as after', told(f, { from: f.maskedPod, to: f.pod, about: udp(asker, at(f.secondPod, 8080)) })),
        sends('to the node that it leaves as', told(f, { from: f.pod, to: f.node, about: udp(at(f.node, NAT_PORT), outside) })),
      ],
    },
    {
      name: `${f.name}: a pod's error that quotes no addresses is asked about like any packet`,
      given: { policies: [policy('closed', { of: 'second', ingress: [] })] },
      steps: [0, f.v4 ? 19 : 39].flatMap((length): Step[] => {
        const error = (to: string): Uint8Array =>
          icmp(f.maskedPod, to, { type: n.unreachable[0], code: n.unreachable[1], body: stub.subarray(0, length) })
        return [
          { say: `${length} bytes`, through: 'from_workload', packet: error(f.pod), action: 'pass' },
          { say: `${length} bytes, to a pod that is closed`, through: 'from_workload', packet: error(f.secondPod), ...DENIED },
        ]
      }),
    },
    {
      name: `${f.name}: a pod's error goes nowhere whose quote is no packet to that pod, however it is written`,
      given: {},
      steps: [
        ...opened.slice(0, 1),
        sends('cut short', icmp(f.maskedPod, f.pod, { type: n.unreachable[0], code: n.unreachable[1], body: stub })),
        sends(
          'a last fragment',
          told(f, {
            from: f.maskedPod,
            to: f.pod,
            about: udp(asker, server, { payload: 'x'.repeat(64), fragment: { offset: 8, more: false } }),
          }),
        ),
        sends(
          'behind options',
          told(f, {
            from: f.maskedPod,
            to: f.pod,
            about: udp(asker, server, f.v4 ? { options: new Uint8Array(4).fill(1) } : { extensions: 1 }),
          }),
        ),
        sends('of another protocol', told(f, { from: f.maskedPod, to: f.pod, about: plain(f.pod, f.secondPod, { proto: 47 }) })),
      ],
    },
  ]
}

/** What the pod's kernel would read, and programs do not. */
function unread(f: Family): PacketCase[] {
  const n = numbers(f)
  const about = udp(at(f.pod, PORT), at(f.secondPod, 80), { payload: 'x'.repeat(8) })
  const senders: readonly (readonly [through: Step['through'], from: string, wrap: (frame: Uint8Array) => Uint8Array])[] = [
    ['from_workload', f.maskedPod, (frame) => frame],
    ['from_host', f.client, (frame) => frame],
    ['from_host', f.remotePod, (inner) => tunnel(f.thirdNode, f.node, { inner, vni: VNI, sport: 50_000 })],
  ]
  const opened: Step = { say: 'datagram', through: 'from_workload', packet: about, action: 'redirect' }
  const bodies = { 'no quote': 8, 'part of it': 16 }
  // more headers than are followed; of a later fragment, to which IPv4's readers do not look
  const odd = f.v4 ? about.slice() : chained(about, new Array<Header>(9).fill(HEADERS.destination))
  if (f.v4) new DataView(odd.buffer).setUint16(20, 5)
  const [type, code] = n.unreachable
  const error = (from: string, { quote = about, ...part }: { quote?: Uint8Array; fragment?: { offset: number; more: boolean } } = {}) =>
    icmp(from, f.pod, { type, code, id: 91, body: l3(quote), ...part })
  const short = { action: 'drop', reason: 'DROP_SHORT' } as const
  return [
    {
      name: `${f.name}: no error comes to a pod in fragments whose first does not show the flow it is about`,
      given: {},
      steps: [
        opened,
        ...senders.flatMap(([through, from, wrap]) =>
          Object.entries(bodies).map(([say, bytes]): Step => {
            const first = cut(f, error(from, { fragment: { offset: 0, more: true } }), bytes)
            return { say: `${from}, with ${say}`, through, packet: wrap(first), ...short }
          }),
        ),
        {
          say: 'nor from the other end',
          through: 'from_workload',
          packet: cut(f, error(f.secondPod, { fragment: { offset: 0, more: true } }), 8),
          ...short,
        },
      ],
    },
    {
      name: `${f.name}: no error comes to a pod whose quote is not to be read`,
      given: {},
      steps: [
        opened,
        ...senders
          .slice(1)
          .map(([through, from, wrap]): Step => ({ say: from, through, packet: wrap(error(from, { quote: odd })), ...short })),
        { say: 'the other end, in one piece', through: 'from_workload', packet: error(f.secondPod), action: 'redirect' },
        {
          say: 'to the node, which reads it itself',
          through: 'from_host',
          packet: icmp(f.client, f.node, { type, code, body: l3(odd) }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
  ]
}

function fromElsewhere(f: Family): PacketCase[] {
  const [asker, far, client] = [at(f.pod, PORT), at(f.overlayPod, 80), at(f.client, PORT)]
  const inner = (frame: Uint8Array, node: string, src: string) =>
    tunnel(node, f.node, { inner: frame, vni: VNI, sport: tunnelPort({ src, dst: f.pod, sport: 0, dport: 0 }) })
  const by = (node: string, { from, about, kind = 0 }: Omit<Told, 'to'>) => inner(told(f, { from, to: f.pod, about, kind }), node, from)
  const overlaid = udp(asker, far)
  const answer = udp(at(f.pod, 8080), client)
  const opened: Step = { say: 'datagram to a pod in the overlay', through: 'from_workload', packet: overlaid, action: 'redirect' }
  const takes = (say: string, packet: Uint8Array, out: Uint8Array): Step => ({ say, through: 'from_host', packet, action: 'redirect', out })
  const drops = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_host', packet, ...REFUSED })
  const otherFlow = udp(asker, at(f.remotePod, 80))
  return [
    {
      name: `${f.name}: out of the tunnel, a pod tells of its own flows only`,
      given: { policies: CLOSED },
      steps: [
        opened,
        { say: 'datagram to another pod elsewhere', through: 'from_workload', packet: otherFlow, action: 'redirect' },
        takes(
          'its own',
          by(f.otherNode, { from: f.overlayPod, about: overlaid }),
          told(f, { from: f.overlayPod, to: f.pod, about: overlaid }),
        ),
        drops("another's", by(f.otherNode, { from: f.overlayPod, about: otherFlow })),
        drops("another's, too big", by(f.otherNode, { from: f.overlayPod, about: otherFlow, kind: 1 })),
      ],
    },
    {
      name: `${f.name}: out of the tunnel, only the node that a flow passes tells of it`,
      given: { policies: CLOSED },
      steps: [
        opened,
        takes(
          'that node',
          by(f.otherNode, { from: f.otherNode, about: overlaid, kind: 2 }),
          told(f, { from: f.otherNode, to: f.pod, about: overlaid, kind: 2 }),
        ),
        drops('a third', by(f.thirdNode, { from: f.thirdNode, about: overlaid, kind: 2 })),
        drops("a third's pod", by(f.thirdNode, { from: f.remotePod, about: overlaid })),
      ],
    },
    {
      name: `${f.name}: a router's error about a service's answer reaches the backend through the node that was asked`,
      given: {},
      steps: [
        takes('datagram', inner(udp(client, at(f.pod, 8080)), f.otherNode, f.client), udp(client, at(f.pod, 8080))),
        takes(
          'too big',
          by(f.otherNode, { from: f.stranger, about: answer, kind: 1 }),
          told(f, { from: f.stranger, to: f.pod, about: answer, kind: 1 }),
        ),
        drops('too big, by another node', by(f.thirdNode, { from: f.stranger, about: answer, kind: 1 })),
      ],
    },
    {
      name: `${f.name}: from the network, a router tells of a pod's flow past policy`,
      given: { policies: CLOSED },
      steps: [
        { say: 'SYN', through: 'from_workload', packet: tcp(asker, at(f.remotePod, 80), { flags: 'S' }), action: 'redirect' },
        {
          say: 'expired',
          through: 'from_host',
          packet: told(f, { from: f.stranger, to: f.pod, about: tcp(asker, at(f.remotePod, 80), { flags: 'S' }), kind: 2 }),
          action: 'redirect',
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...ofPods(f), ...unread(f), ...fromElsewhere(f)])
