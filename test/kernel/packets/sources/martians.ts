// SPDX-License-Identifier: Apache-2.0
/** Addresses that no packet of a network has, and those that are true from a veth or the tunnel only. Rules let all
 * of them in. Layer: test. */
import { icmp, l3, plain, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { netSide, policy } from '../policy/policies.ts'
import { A_WHILE, NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'

const PORT = 42_000
const MARTIAN = { action: 'drop', reason: 'DROP_MARTIAN' } as const
const SPOOFED = { action: 'drop', reason: 'DROP_SPOOFED' } as const
const SENT = { action: 'redirect' } as const
const KERNELS = { action: 'pass', out: 'same' } as const

/** Rules of "pod" and of the host that let in, and through, what says it comes from there. */
function letsIn(...sources: readonly string[]): PacketCase['given'] {
  const from = sources.map((source) => ({ source: netSide(`${source}/${source.includes(':') ? 128 : 32}`) }))
  return {
    policies: [
      policy('in', { of: 'pod', ingress: from }),
      policy('host', { of: HOST, ingress: from }),
      policy('through', { of: HOST, ingress: from, egress: [{}], scope: 'forward' }),
    ],
  }
}

function inTunnel(f: Family, node: string, inner: Uint8Array): Uint8Array {
  return tunnel(node, f.node, { inner, vni: VNI, sport: 50_000 })
}

interface Refused {
  readonly what: string
  readonly sources: readonly string[]
  readonly end: Pick<Step, 'action' | 'reason'>
  /** the node by which the source is not true in the tunnel; '': it is true there */
  readonly by: string
}

/** A source that is refused wherever we would send the packet on. */
function refusedSources(f: Family, { what, sources, end, by }: Refused): PacketCase[] {
  return sources.map((source) => {
    const from = at(source, PORT)
    const comes = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_host', packet, ...end })
    const pod = at(f.pod, 80)
    const { echo } = numbers(f)
    return {
      name: `${f.name}: ${what} (${source}) is not believed from the network, whatever rules let it in`,
      given: { ...letsIn(source), backends: [{ addr: f.pod, port: 80 }], frontends: [at(f.vip, 81)] },
      steps: [
        comes('SYN to a pod', tcp(from, pod, { flags: 'S' })),
        comes('data to a pod', tcp(from, pod, { flags: 'PA', payload: 'x' })),
        comes('datagram to a pod', udp(from, pod)),
        comes('ping to a pod', icmp(source, f.pod, { type: echo, word: 0x0101_0001 })),
        comes('first fragment to a pod', udp(from, pod, { id: 7, fragment: { offset: 0, more: true }, payload: 'hello123' })),
        comes('SYN to a node port', tcp(from, at(f.node, NODE_PORT), { flags: 'S' })),
        comes('datagram to a node port', udp(from, at(f.node, NODE_PORT))),
        comes('SYN to a service', tcp(from, at(f.vip, 80), { flags: 'S' })),
        comes('datagram to a service', udp(from, at(f.vip, 81))),
        ...(by === '' ? [] : [comes('datagram in the tunnel', inTunnel(f, by, udp(from, pod)))]),
        ...(by === '' ? [] : [comes('SYN in the tunnel', inTunnel(f, by, tcp(from, pod, { flags: 'S' })))]),
      ],
    }
  })
}

const martiansOf = (f: Family): readonly string[] =>
  f.v4
    ? ['127.0.0.1', '127.9.8.7', '0.0.0.0', '0.1.2.3', '224.0.0.5', '239.1.1.1', '255.255.255.255', '169.254.7.7']
    : ['::1', '::', 'ff02::5', 'ff0e::7', 'fe80::7', 'febf::1']

function refusedOf(f: Family): PacketCase[] {
  return [
    ...refusedSources(f, { what: 'no address of a network', sources: martiansOf(f), end: MARTIAN, by: f.otherNode }),
    ...refusedSources(f, { what: 'an address of the node itself', sources: [f.node, f.quietOwn], end: SPOOFED, by: '' }),
    ...refusedSources(f, { what: 'an address of a local pod', sources: [f.secondPod, f.elsewherePod, f.routedPod], end: SPOOFED, by: '' }),
    ...refusedSources(f, { what: "an overlay pod's address without its tunnel", sources: [f.overlayPod], end: SPOOFED, by: f.thirdNode }),
    toLoopback(f),
    toHost(f),
  ]
}

/** Node ports of loopback are for the node's own processes. */
function toLoopback(f: Family): PacketCase {
  const none = f.v4 ? '0.0.0.0' : '::'
  const ends = [f.loopback, none, ...(f.v4 ? ['127.0.0.2', '0.0.0.1'] : [])]
  return {
    name: `${f.name}: node ports of loopback are reached neither from the network nor by pods`,
    given: { backends: [{ addr: f.pod, port: 80 }], frontends: ends.map((end) => at(end, 80)) },
    steps: ends.flatMap((end) =>
      [NODE_PORT, 80].flatMap((port): Step[] => {
        if (port === NODE_PORT && end !== f.loopback && end !== none) return []
        const each = (through: Step['through'], from: string): Step[] => [
          { say: `SYN to ${at(end, port)}`, through, packet: tcp(at(from, PORT), at(end, port), { flags: 'S' }), ...MARTIAN },
          { say: `datagram to ${at(end, port)}`, through, packet: udp(at(from, PORT), at(end, port)), ...MARTIAN },
        ]
        const inner = udp(at(f.client, PORT), at(end, port))
        return [
          ...each('from_host', f.client),
          ...each('from_workload', f.secondPod),
          { say: `in the tunnel to ${at(end, port)}`, through: 'from_host', packet: inTunnel(f, f.otherNode, inner), ...MARTIAN },
        ]
      }),
    ),
  }
}

/** What the rules of a device are asked about. */
function toHost(f: Family): PacketCase {
  const comes = (from: string, to: string, end: Pick<Step, 'action' | 'reason'>): Step => ({
    say: `${from} to ${to}`,
    through: 'from_host',
    packet: udp(at(from, PORT), at(to, 80)),
    ...end,
  })
  return {
    name: `${f.name}: rules of the host let in no pod's address from the network, and send on none that no network has`,
    given: letsIn(f.elsewherePod, ...martiansOf(f)),
    steps: [
      comes(f.elsewherePod, f.node, SPOOFED),
      comes(f.elsewherePod, f.remotePod, SPOOFED),
      ...martiansOf(f).map((source) => comes(source, f.remotePod, MARTIAN)),
    ],
  }
}

/** One flow between two pods of the node: the network has no part in it. */
function established(f: Family): PacketCase[] {
  const [a, b, vip] = [at(f.pod, PORT), at(f.secondPod, 80), at(f.vip, 80)]
  const { echo, unreachable } = numbers(f)
  const pod = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, ...SENT })
  const forged = (say: string, packet: Uint8Array): Step => ({ say: `forged: ${say}`, through: 'from_host', packet, ...SPOOFED })
  const word = 0x0101_0001
  const [type, code] = unreachable
  const tells = (source: string, about = udp(a, at(f.client, 80))): Uint8Array => icmp(source, f.pod, { type, code, body: l3(about) })
  return [
    {
      name: `${f.name}: the network says nothing in a flow of two local pods`,
      given: {},
      steps: [
        pod('SYN', tcp(a, b, { flags: 'S' })),
        forged('SYN-ACK', tcp(b, a, { flags: 'SA' })),
        pod('SYN-ACK', tcp(b, a, { flags: 'SA' })),
        pod('ACK', tcp(a, b, { flags: 'A' })),
        forged('data', tcp(a, b, { flags: 'PA', payload: 'x' })),
        forged('answer', tcp(b, a, { flags: 'PA', payload: 'x' })),
        forged('RST', tcp(a, b, { flags: 'R' })),
        forged('SYN', tcp(a, b, { flags: 'S' })),
        { ...forged('data after a while', tcp(a, b, { flags: 'PA', payload: 'x' })), age: A_WHILE },
        pod('data', tcp(a, b, { flags: 'PA', payload: 'x' })),
        pod('datagram', udp(a, b)),
        forged('datagram', udp(a, b)),
        forged('datagram back', udp(b, a)),
        pod('datagram back', udp(b, a)),
        forged('datagram back again', udp(b, a)),
        pod('ping', icmp(f.pod, f.secondPod, { type: echo, word })),
        forged('ping', icmp(f.pod, f.secondPod, { type: echo, word })),
        pod('of a protocol without ports', plain(f.pod, f.secondPod, { proto: 47 })),
        forged('of a protocol without ports', plain(f.pod, f.secondPod, { proto: 47 })),
        forged('of a protocol without ports, back', plain(f.secondPod, f.pod, { proto: 47 })),
        forged('port unreachable', tells(f.secondPod, udp(a, b))),
      ],
    },
    {
      name: `${f.name}: the network says nothing in a pod's flow to a service that a local pod serves`,
      given: { backends: [{ addr: f.secondPod, port: 80 }] },
      steps: [
        pod('datagram', udp(a, vip)),
        forged('answer', udp(b, a)),
        pod('answer', udp(b, a)),
        forged('answer again', udp(b, a)),
        forged('from the pod to the backend', udp(a, b)),
      ],
    },
    {
      name: `${f.name}: errors from no address of a network tell of no flow`,
      given: {},
      steps: [
        pod('datagram', udp(a, at(f.client, 80))),
        ...[...martiansOf(f).filter((source) => !/^(fe|169)/.test(source)), f.node, f.elsewherePod, f.overlayPod].map((source) =>
          forged(source, tells(source)),
        ),
      ],
    },
    {
      name: `${f.name}: a router tells of a flow, though it has addresses of links alone`,
      newer: true, // older kernels need the neighbour given
      given: {},
      steps: [
        pod('datagram', udp(a, at(f.client, 80))),
        { say: 'port unreachable', through: 'from_host', packet: tells(f.v4 ? '169.254.7.7' : 'fe80::7'), ...SENT },
      ],
    },
  ]
}

/** A node's tunnel packet is for pods that are here, or for the node itself. */
function outOfTunnel(f: Family): PacketCase[] {
  const from = at(f.client, PORT)
  const refused = (say: string, packet: Uint8Array, reason: string): Step => ({ say, through: 'from_host', packet, action: 'drop', reason })
  const goesOn = (to: string): Step => refused(to, inTunnel(f, f.otherNode, udp(from, at(to, 80))), 'DROP_NO_ROUTE')
  const unflagged = inTunnel(f, f.otherNode, udp(from, at(f.pod, 80)))
  unflagged[14 + (f.v4 ? 20 : 40) + 8] = 0
  const asks = icmp(f.otherNode, f.node, { type: 135, ttl: 255, body: new Uint8Array(16) })
  return [
    {
      name: `${f.name}: nothing out of the tunnel is sent on to others`,
      given: {},
      steps: [f.stranger, f.thirdNode, f.remotePod, f.overlayPod, f.lost].map(goesOn),
    },
    {
      name: `${f.name}: a tunnel header without a VNI is refused`,
      given: {},
      steps: [refused('no VNI', unflagged, 'DROP_TUNNEL_HEADER')],
    },
    ...(f.v4
      ? []
      : [
          {
            name: `${f.name}: the tunnel brings no message of a link`,
            given: { policies: [policy('closed', { of: HOST, ingress: [] })] },
            steps: [refused('neighbour solicitation', inTunnel(f, f.otherNode, asks), 'DROP_POLICY')],
          },
          {
            name: `${f.name}: a listener's report has a source of the link, or rules are asked`,
            given: { policies: [policy('closed', { of: 'pod', egress: [] })] },
            steps: [
              {
                say: "by the pod's own address",
                through: 'from_workload',
                packet: icmp(f.pod, 'ff02::16', { type: 143, ttl: 1, body: new Uint8Array(8) }),
                action: 'drop',
                reason: 'DROP_POLICY',
              } as const,
            ],
          },
        ]),
  ]
}

/** What looks like it, and is right. */
function believed(f: Family): PacketCase[] {
  const [pod, second] = [at(f.pod, 80), at(f.secondPod, 80)]
  const link = f.v4 ? '169.254.7.7' : 'fe80::7'
  const comes = (say: string, packet: Uint8Array, end: Pick<Step, 'action' | 'out'> = SENT): Step => ({
    say,
    through: 'from_host',
    packet,
    ...end,
  })
  const by = (node: string, from: string, to: string): Uint8Array => inTunnel(f, node, udp(from, to))
  const dhcp = f.v4
    ? [udp('0.0.0.0:68', '255.255.255.255:67'), udp(at(f.client, 67), '255.255.255.255:68')]
    : [udp('[fe80::7]:546', '[ff02::1:2]:547'), udp('[fe80::7]:547', '[fe80::1]:546')]
  return [
    {
      name: `${f.name}: what addresses of the link send to the node itself, and DHCP, is the kernel's`,
      given: {},
      steps: [
        comes('to the node', udp(at(link, PORT), at(f.node, 80)), KERNELS),
        comes('to the gateway of pods', udp(at(link, PORT), at(f.gateway, 80)), KERNELS),
        ...dhcp.map((packet, index) => comes(`DHCP ${index}`, packet, KERNELS)),
        comes('to loopback, and no service', udp(at(f.client, PORT), at(f.loopback, 80)), KERNELS),
      ],
    },
    {
      name: `${f.name}: what addresses of the link send to the node itself passes its rules`,
      given: letsIn(link),
      steps: [comes('to the node', udp(at(link, PORT), at(f.node, 80)), { action: 'pass' })],
    },
    {
      name: `${f.name}: sources that are true are believed, by the network and in the tunnel`,
      given: { backends: [{ addr: f.pod, port: 80 }] },
      steps: [
        comes('a pod of another node', udp(at(f.remotePod, PORT), pod)),
        comes('another node', udp(at(f.otherNode, PORT), pod)),
        comes('another node to a node port', udp(at(f.otherNode, PORT + 1), at(f.node, NODE_PORT))),
        comes('an overlay pod from its node', by(f.otherNode, at(f.overlayPod, PORT), pod)),
        comes('the same to the node itself', by(f.otherNode, at(f.overlayPod, PORT), at(f.node, 80)), { action: 'pass' }),
        comes('a client by the port of another node', by(f.otherNode, at(f.client, PORT), pod)),
        comes('a pod of the node by the port of another', by(f.otherNode, at(f.secondPod, PORT), pod)),
        comes('the node by the port of another', by(f.otherNode, at(f.node, PORT), pod)),
        comes('a backend to itself by the port of another', by(f.otherNode, pod, pod)),
        comes('an overlay pod that has moved', by(f.thirdNode, at(f.overlayPod, PORT + 1), pod)),
      ].map((step) => (step.say.endsWith('moved') ? { ...step, overlayBy: f.thirdNode } : step)),
    },
    {
      name: `${f.name}: a client's flow to a pod goes on both ways`,
      given: {},
      steps: [
        comes('asks', udp(at(f.client, PORT), second)),
        { say: 'answers', through: 'from_workload', packet: udp(second, at(f.client, PORT)), ...SENT },
        comes('asks again', udp(at(f.client, PORT), second)),
        { ...comes('and after a while', udp(at(f.client, PORT), second)), age: A_WHILE },
      ],
    },
  ]
}

/** What is refused whatever bpfEnforceRPF says. */
export const refused: readonly PacketCase[] = families.flatMap((f) => refusedOf(f))

export const cases: readonly PacketCase[] = [...refused, ...families.flatMap((f) => [...established(f), ...outOfTunnel(f), ...believed(f)])]
