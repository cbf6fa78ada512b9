// SPDX-License-Identifier: Apache-2.0
/** Ports that no policy of a host cuts, and all that is like them and is cut: they are ways around policy.
 * Layer: test. */
import { FAILSAFE_PORTS } from '#lib/base/bpf-constants.ts'
import { parseAddr, parsePort } from '#lib/base/ip.ts'
import type { FailsafePort, Failsafes } from '#lib/model/failsafe.ts'
import type { Policy } from '#lib/model/policy.ts'
import { tcp, udp, type UdpOptions } from '../../../../testkit/packets/packet.ts'
import { HOST, UNDERLAY } from '../../../../testkit/packets/policy.ts'
import { sctp } from '../asks-back.ts'
import type { PacketCase, ProgramName, Step } from '../../../../testkit/packets/case.ts'
import { policy } from './policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { at, families } from '../../../../testkit/packets/cluster.ts'

const [TCP, UDP, SCTP] = [6, 17, 132]
/** of no port that is spared, nor of one that the compressed table takes for it */
const OTHER = 40_000
const SSH = 22
/** for the client alone */
const NARROW = 2222
/** ports of others */
const [ASKED, DNS] = [8080, 53]
/** of both ends */
const NGAP = 38_412
/** for the other family alone */
const FOREIGN = 4443
/** each is in the same slot of the compressed table */
const alike = (port: number): readonly number[] => [port + FAILSAFE_PORTS, port + 30 * FAILSAFE_PORTS]

function failsafes(f: Family): Failsafes {
  const port = (protocol: number, number: number, net?: FailsafePort['net']): FailsafePort => ({ protocol, port: parsePort(number), net })
  const client = { addr: parseAddr(f.client), bits: f.v4 ? 32 : 128 }
  const others = { addr: parseAddr(f.v4 ? '::' : '0.0.0.0'), bits: 0 }
  return {
    inbound: [port(TCP, SSH), port(TCP, NARROW, client), port(TCP, FOREIGN, others), port(SCTP, NGAP)],
    outbound: [port(TCP, ASKED, client), port(UDP, DNS), port(TCP, FOREIGN, others), port(SCTP, NGAP)],
  }
}

interface Asked {
  readonly say: string
  readonly packet: Uint8Array
}

type Make = (from: string, to: string) => Uint8Array
const syn: Make = (from, to) => tcp(from, to, { flags: 'S' })
const ack: Make = (from, to) => tcp(from, to, { flags: 'A' })
const datagram: Make = (from, to) => udp(from, to, { payload: 'x' })

/** What comes in to the node: to its own ports, and from ports of others. */
function incoming(f: Family): Record<'asks' | 'asksElse' | 'answers' | 'answersElse', readonly Asked[]> {
  const toEnd = (make: Make, from: string, end: string): Asked => {
    return { say: `${make === datagram ? 'UDP' : 'TCP'} from ${from} to ${end}`, packet: make(at(from, OTHER), end) }
  }
  const to = (make: Make, from: string, port: number): Asked => toEnd(make, from, at(f.node, port))
  const from = (make: Make, addr: string, port: number): Asked => {
    const what = make === datagram ? 'UDP' : make === syn ? 'a SYN' : 'an ACK'
    return { say: `${what} from port ${port} of ${addr}`, packet: make(at(addr, port), at(f.node, OTHER)) }
  }
  return {
    asks: [to(syn, f.stranger, SSH), to(syn, f.client, NARROW)],
    asksElse: [
      ...alike(SSH).map((port) => to(syn, f.stranger, port)),
      ...alike(NARROW).map((port) => to(syn, f.client, port)),
      to(datagram, f.stranger, SSH),
      to(syn, f.stranger, NARROW),
      to(syn, f.client, FOREIGN),
      toEnd(syn, f.stranger, at(f.pod, SSH)),
      // ports that the node asks of others are no ports of its own
      to(syn, f.client, ASKED),
      to(datagram, f.stranger, DNS),
      // nor are its own ports in the place of the sender's
      from(syn, f.client, SSH),
      from(syn, f.client, NARROW),
    ],
    answers: [from(ack, f.client, ASKED), from(datagram, f.stranger, DNS)],
    answersElse: [
      ...alike(ASKED).map((port) => from(ack, f.client, port)),
      ...alike(DNS).map((port) => from(datagram, f.stranger, port)),
      from(datagram, f.client, ASKED),
      from(ack, f.stranger, ASKED),
      from(ack, f.stranger, DNS),
      from(ack, f.client, FOREIGN),
      // an answer is no SYN
      from(syn, f.client, ASKED),
    ],
  }
}

/** What the node itself sends. */
function outgoing(f: Family): ReturnType<typeof incoming> {
  const to = (make: Make, addr: string, port: number): Asked => {
    return { say: `${make === datagram ? 'UDP' : 'TCP'} to ${at(addr, port)}`, packet: make(at(f.node, OTHER), at(addr, port)) }
  }
  const from = (make: Make, addr: string, port: number): Asked => {
    return { say: `${make === datagram ? 'UDP' : 'TCP'} from own port ${port} to ${addr}`, packet: make(at(f.node, port), at(addr, OTHER)) }
  }
  return {
    asks: [to(syn, f.client, ASKED), to(datagram, f.stranger, DNS)],
    asksElse: [
      ...alike(ASKED).map((port) => to(syn, f.client, port)),
      ...alike(DNS).map((port) => to(datagram, f.stranger, port)),
      to(datagram, f.client, ASKED),
      to(syn, f.stranger, ASKED),
      to(syn, f.client, FOREIGN),
      to(syn, f.client, SSH),
      from(syn, f.client, ASKED),
    ],
    answers: [from(ack, f.stranger, SSH), from(ack, f.client, NARROW)],
    answersElse: [
      ...alike(SSH).map((port) => from(ack, f.stranger, port)),
      from(datagram, f.stranger, SSH),
      from(ack, f.stranger, NARROW),
      from(ack, f.client, FOREIGN),
    ],
  }
}

const TUNNEL = 4789
/** of the VXLAN header, and of none that the tunnel has */
const [PROBE, VNI_VALID] = [0x01, 0x08]

interface Alike extends UdpOptions {
  readonly ends?: readonly [string, string]
  readonly port?: number
}

/** Between nodes: what agents send to learn whether the tunnel's packets arrive, and what is like it. */
function probes(f: Family, [from, to]: readonly [string, string]): { readonly own: readonly Asked[]; readonly alike: readonly Asked[] } {
  const one = (say: string, of: Alike): Asked => {
    const { ends = [from, to], port = TUNNEL, ...more } = of
    return { say, packet: udp(at(ends[0], OTHER), at(ends[1], port), { payload: withFlags(PROBE), ...more }) }
  }
  const padded = Buffer.concat([udp(at(from, OTHER), at(to, TUNNEL), {}), withFlags(PROBE)])
  const other = (address: string): string => (address === f.otherNode ? f.stranger : address)
  return {
    own: [one('a probe', {})],
    alike: [
      one('a probe that is not between nodes', { ends: [other(from), other(to)] }),
      one('a probe to a pod of this node', { ends: [from, f.pod] }),
      one('a probe to loopback', { ends: [from, f.loopback] }),
      one('a probe at another port', { port: TUNNEL + 1 }),
      one('no flag', { payload: withFlags(0) }),
      one('one flag more', { payload: withFlags(PROBE | 2) }),
      one('the flag of a VNI, which is not the tunnel’s', { payload: withFlags(VNI_VALID) }),
      one('half of a header', { payload: withFlags(PROBE).subarray(0, 3) }),
      { say: 'a flag behind the end of the datagram', packet: padded },
      one('a first fragment', { fragment: { offset: 0, more: true }, id: 7 }),
      f.v4
        ? one('a source route', { options: Buffer.from([131, 7, 4, 192, 168, 50, 100, 0]) })
        : one('extension headers', { extensions: 2 }),
    ],
  }
}

function withFlags(flags: number): Buffer {
  return Buffer.concat([Buffer.from([flags]), Buffer.alloc(79)])
}

function steps(through: ProgramName, action: 'pass' | 'drop', asked: readonly Asked[]): readonly Step[] {
  const drop = { action: 'drop', reason: 'DROP_POLICY' } as const
  return asked.map((one) => ({ ...one, through, ...(action === 'drop' ? drop : ({ action, out: 'same' } as const)) }))
}

function forFamily(f: Family): PacketCase[] {
  const [comes, leaves] = [incoming(f), outgoing(f)]
  const deny = [{ action: 'deny' }] as const
  // what untracked rules leave open is let be by the others
  const rest = policy('rest', { of: HOST, ingress: [{}], egress: [{}] })
  const cut = policy('cut', { of: HOST, ingress: deny, egress: deny, scope: 'doNotTrack' })
  const closed: readonly Policy[] = [
    policy('closed', { of: HOST, ingress: [], egress: [] }),
    policy('through', { of: HOST, ingress: [], egress: [], scope: 'forward' }),
  ]
  const given = { failsafes: failsafes(f) }
  return [
    ...(['untracked', 'from_host'] as const).map((through) => ({
      name: `${f.name}: untracked rules that deny all (${through}) let in what asks failsafe ports and what such ports answer, nothing that is alike`,
      given: { ...given, policies: [cut, rest] },
      steps: [
        ...steps(through, 'pass', [...comes.asks, ...comes.answers]),
        ...steps(through, 'drop', [...comes.asksElse, ...comes.answersElse]),
      ],
    })),
    {
      name: `${f.name}: untracked rules that deny all let out what asks failsafe ports and what such ports answer, nothing that is alike`,
      given: { ...given, policies: [cut, rest] },
      steps: [
        ...steps('to_host', 'pass', [...leaves.asks, ...leaves.answers]),
        ...steps('to_host', 'drop', [...leaves.asksElse, ...leaves.answersElse]),
      ],
    },
    ...(['untracked', 'from_host'] as const).map((through) => ({
      name: `${f.name}: to untracked rules that deny all (${through}) no segment is an answer that neither acknowledges nor resets`,
      given: { ...given, policies: [cut, rest] },
      steps: ['', 'F', 'P', 'FP', 'SF', 'SP', 'SR', 'A', 'SA', 'FA', 'R', 'RA'].flatMap((flags, index) => {
        const packet = tcp(at(f.client, ASKED), at(f.node, OTHER + index), { flags })
        return steps(through, /A|^R/.test(flags) ? 'pass' : 'drop', [{ say: `flags "${flags}"`, packet }])
      }),
    })),
    {
      name: `${f.name}: untracked rules that deny all let no SCTP association begin from a failsafe port, in or out`,
      given: { ...given, policies: [cut, rest] },
      steps: [
        ...([f.client, f.node] as const).flatMap((from) => {
          const [through, to] = from === f.node ? (['to_host', f.client] as const) : (['from_host', f.node] as const)
          const one = (tag: number): Asked => ({ say: `from ${from}, tag ${tag}`, packet: sctp([from, NGAP], [to, OTHER], tag) })
          return [...steps(through, 'pass', [one(7)]), ...steps(through, 'drop', [one(0)])]
        }),
        ...steps('from_host', 'pass', [{ say: 'to such a port', packet: sctp([f.client, OTHER], [f.node, NGAP], 0) }]),
      ],
    },
    {
      name: `${f.name}: a host whose rules deny all is asked at its failsafe ports, and at none that is alike or of its sender`,
      given: { ...given, policies: closed },
      steps: [
        ...steps('from_host', 'pass', comes.asks),
        ...steps('from_host', 'drop', comes.asksElse),
        ...steps('from_host', 'drop', [
          { say: 'a SYN from a port that the host asks', packet: syn(at(f.client, ASKED), at(f.node, OTHER)) },
          { say: 'UDP from a port that the host asks', packet: datagram(at(f.stranger, DNS), at(f.node, OTHER)) },
        ]),
      ],
    },
    {
      name: `${f.name}: a host whose rules deny all asks failsafe ports, and none that is alike`,
      given: { ...given, policies: closed },
      steps: [...steps('to_host', 'pass', leaves.asks), ...steps('to_host', 'drop', leaves.asksElse)],
    },
    {
      name: `${f.name}: failsafe ports are asked by the host itself: what it forwards to such a port is cut`,
      given: { ...given, policies: [policy('out', { of: UNDERLAY, egress: [], scope: 'forward' })] },
      steps: [
        ...steps('from_workload', 'drop', [
          { say: 'a pod to a port that the host asks', packet: syn(at(f.pod, OTHER), at(f.client, ASKED)) },
          { say: 'a pod to a port that the host asks by UDP', packet: datagram(at(f.pod, OTHER), at(f.stranger, DNS)) },
        ]),
      ],
    },
    ...[
      { rules: 'rules', policies: closed },
      { rules: 'untracked rules', policies: [cut, rest] },
    ].map(({ rules, policies }) => {
      const [comes, leaves] = [probes(f, [f.otherNode, f.node]), probes(f, [f.node, f.otherNode])]
      return {
        name: `${f.name}: ${rules} that deny all let probes of the tunnel pass between nodes, in and out, and nothing that is alike`,
        given: { policies },
        steps: [
          ...steps('from_host', 'pass', comes.own),
          ...steps('from_host', 'drop', comes.alike),
          ...steps('to_host', 'pass', leaves.own),
          ...steps('to_host', 'drop', leaves.alike),
        ],
      }
    }),
    {
      name: `${f.name}: where no port is spared, untracked rules let in none`,
      given: { policies: [cut, rest] },
      steps: (['untracked', 'from_host'] as const).flatMap((through) => steps(through, 'drop', [...comes.asks, ...comes.answers])),
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
