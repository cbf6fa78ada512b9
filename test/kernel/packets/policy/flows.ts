// SPDX-License-Identifier: Apache-2.0
/** Policy over a flow's life: where it is asked, what comes after a change, and how flows that are not plain are
 * asked about. Layer: test. */
import { icmp, l3, plain, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { FlowWanted, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { DENIED, opens, podSide, policy, ruleName, toPort } from './policies.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 43_000

function changes(f: Family): PacketCase[] {
  const [c, s] = [at(f.secondPod, PORT), at(f.pod, 80)]
  const flow: FlowWanted = { proto: 17, from: c, to: s }
  const ask = { through: 'from_workload', packet: udp(c, s), action: 'redirect' } as const
  const answer = { through: 'from_workload', packet: udp(s, c), action: 'redirect' } as const
  const opened: readonly Step[] = [
    { say: 'question', ...ask },
    { say: 'answer', ...answer },
  ]
  /** whichever end sends, and however often */
  const denied: readonly Step[] = [
    { say: 'question', ...ask, ...DENIED },
    { say: 'answer', ...answer, ...DENIED },
    { say: 'question again', ...ask, ...DENIED },
  ]
  const tcpFlow: FlowWanted = { proto: 6, from: c, to: s }
  const [syn, synAck, ack] = [tcp(c, s, { flags: 'S' }), tcp(s, c, { flags: 'SA' }), tcp(c, s, { flags: 'A' })]
  const connected: readonly Step[] = [
    { ...ask, say: 'SYN', packet: syn },
    { ...answer, say: 'SYN-ACK', packet: synAck },
    { ...ask, say: 'ACK', packet: ack },
  ]
  return [
    {
      name: `${f.name}: a flow that is let be no longer ends with its next packet, both ways`,
      given: { policies: opens(80) },
      steps: [...opened, { say: 'closed', ...ask, ...DENIED, policies: opens(81) }, ...denied],
    },
    {
      name: `${f.name}: a flow that is let be no longer ends with its next packet, even if that is an answer`,
      given: { policies: opens(80) },
      steps: [...opened, { say: 'closed', ...answer, ...DENIED, policies: opens(81) }, ...denied],
    },
    {
      name: `${f.name}: a flow that is let be still goes on, by its new rule`,
      given: { policies: opens(80) },
      steps: [
        ...opened,
        { say: 'changed', ...ask, policies: opens(81, 80), flows: [{ ...flow, rules: { ingress: ruleName('in', 'ingress', 1) } }] },
        {
          say: 'changed again, an answer first',
          ...answer,
          policies: opens(80, 81),
          flows: [{ ...flow, rules: { ingress: ruleName('in', 'ingress', 0) } }],
        },
        { say: 'no policy any more', ...ask, policies: [], flows: [{ ...flow, rules: { ingress: '' } }] },
        { say: 'a new one', ...answer, policies: opens(80), flows: [{ ...flow, rules: { ingress: ruleName('in', 'ingress', 0) } }] },
      ],
    },
    {
      name: `${f.name}: a flow of pods without policy is asked about as soon as there is one`,
      given: { policies: [policy('elsewhere', { of: 'masked', ingress: [] })] },
      steps: [...opened, { say: 'closed', ...ask, policies: opens(81), ...DENIED }, ...denied],
    },
    {
      name: `${f.name}: answers follow the decision, whatever rules of their own direction say`,
      given: { policies: [...opens(80), policy('out', { of: 'pod', egress: [] }), policy('back', { of: 'second', ingress: [] })] },
      steps: [
        ...opened,
        { say: 'answer after a while', ...answer, age: 3000 },
        { say: 'question the other way', through: 'from_workload', packet: udp(at(f.pod, PORT), at(f.secondPod, 80)), ...DENIED },
      ],
    },
    {
      name: `${f.name}: a SYN is asked about, though its flow is there`,
      given: { policies: opens(80) },
      steps: [
        ...connected,
        { ...ask, say: 'data of what was let be', packet: ack, policies: opens(81), sameEpoch: true },
        { ...ask, say: 'SYN', packet: syn, ...DENIED },
      ],
    },
    {
      name: `${f.name}: a server that connects by the ports it answered on is judged as a client`,
      given: { policies: [policy('in', { of: 'pod', ingress: [{}], egress: [] })] },
      steps: [
        ...connected,
        {
          ...answer,
          say: 'SYN',
          packet: tcp(s, c, { flags: 'S' }),
          ...DENIED,
          flows: [{ ...tcpFlow, rules: { ingress: ruleName('in', 'ingress', 0) } }],
        },
        { ...ask, say: 'the flow goes on', packet: ack },
      ],
    },
    {
      name: `${f.name}: a server that may connect by the ports it answered on opens nothing for a client that no longer may`,
      given: { policies: opens(80) },
      steps: [
        ...connected,
        { ...ask, say: 'closed', packet: ack, ...DENIED, policies: opens(81) },
        { ...answer, say: 'SYN', packet: tcp(s, c, { flags: 'S' }) },
        { ...ask, say: 'closed still', packet: ack, ...DENIED },
      ],
    },
    {
      name: `${f.name}: without a change, a closer look comes with age`,
      given: { policies: opens(80) },
      steps: [
        ...opened,
        { say: 'at once', ...ask, policies: opens(81), sameEpoch: true },
        { say: 'later', ...ask, ...DENIED, age: 3000 },
        ...denied,
      ],
    },
  ]
}

function otherWays(f: Family): PacketCase[] {
  const n = numbers(f)
  const [c, s] = [at(f.remotePod, PORT), at(f.pod, 80)]
  const client = at(f.client, PORT)
  const payload = new Uint8Array(64)
  const part = (offset: number, port: number) => udp(client, at(f.pod, port), { payload, id: 78, fragment: { offset, more: offset === 0 } })
  const inTunnel = (flags: string) => {
    const sport = tunnelPort({ src: f.remotePod, dst: f.pod, sport: PORT, dport: 80 })
    return tunnel(f.otherNode, f.node, { inner: tcp(c, s, { flags, ttl: 63 }), vni: VNI, sport })
  }
  /** what follows the header reads as a ping's */
  const body = new Uint8Array(64).fill(n.echo).map((byte, at) => (at % 2 === 0 ? byte : 0))
  const pingPart = (kind: number, offset: number) =>
    icmp(f.client, f.pod, { type: kind, word: kind === n.echo ? 0x0505_0001 : 0, body, id: kind, fragment: { offset, more: offset === 0 } })
  const [type, code] = n.unreachable
  const error = icmp(f.client, f.pod, { type, code, body: l3(udp(s, client)) })
  const everybody = f.v4 ? '224.0.0.251' : 'ff02::fb'
  const errorOfPod = (to: string) => icmp(f.pod, to, { type, code, body: l3(udp(client, s)) })
  return [
    {
      name: `${f.name}: what is sent into a pod at once has been asked about`,
      given: { policies: [policy('in', { of: 'pod', ingress: [{ source: podSide('remote') }] })] },
      steps: [
        { say: 'from outside', through: 'from_host', packet: tcp(client, s, { flags: 'S' }), ...DENIED },
        { say: 'from another pod here', through: 'from_workload', packet: tcp(at(f.secondPod, PORT), s, { flags: 'S' }), ...DENIED },
        { say: 'from a pod elsewhere', through: 'from_host', packet: tcp(c, s, { flags: 'S' }), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: a flow that is seen first where it goes into the pod is judged there`,
      given: { policies: opens(80) },
      steps: [
        {
          say: 'let in',
          through: 'to_workload',
          packet: udp(client, s),
          action: 'pass',
          flows: [{ proto: 17, from: client, to: s, rules: { ingress: ruleName('in', 'ingress', 0) } }],
        },
        { say: 'refused', through: 'to_workload', packet: udp(client, at(f.pod, 81)), ...DENIED },
      ],
    },
    {
      name: `${f.name}: a packet out of the tunnel is judged by its inner addresses`,
      given: { policies: [policy('in', { of: 'pod', ingress: [{ source: podSide('remote') }] })] },
      steps: [
        {
          say: 'let in',
          through: 'from_host',
          packet: inTunnel('S'),
          action: 'redirect',
          flows: [{ proto: 6, from: c, to: s, rules: { ingress: ruleName('in', 'ingress', 0) } }],
        },
        {
          say: 'closed',
          through: 'from_host',
          packet: inTunnel('A'),
          policies: opens(81),
          ...DENIED,
        },
        { say: 'its answer', through: 'from_workload', packet: tcp(s, c, { flags: 'A' }), ...DENIED },
      ],
    },
    {
      name: `${f.name}: fragments of a datagram that is let in`,
      given: { policies: opens(80) },
      steps: [
        { say: 'first', through: 'from_host', packet: part(0, 80), action: 'redirect' },
        { say: 'last', through: 'from_host', packet: part(24, 80), action: 'redirect' },
        { say: 'last, closed meanwhile', through: 'from_host', packet: part(24, 80), policies: opens(81), ...DENIED },
      ],
    },
    {
      name: `${f.name}: fragments of a datagram that is not`,
      given: { policies: opens(81) },
      steps: [
        { say: 'first', through: 'from_host', packet: part(0, 80), ...DENIED },
        { say: 'last', through: 'from_host', packet: part(24, 80), ...DENIED, flows: [{ proto: 17, from: client, to: s, gone: true }] },
      ],
    },
    {
      name: `${f.name}: fragments of a ping, whatever is in the last`,
      given: { policies: [policy('in', { of: 'pod', ingress: [{ icmp: { type: n.echo, code: undefined } }] })] },
      steps: [
        { say: 'first', through: 'from_host', packet: pingPart(n.echo, 0), action: 'redirect' },
        { say: 'last', through: 'from_host', packet: pingPart(n.echo, 24), action: 'redirect' },
        { say: 'last, after a while', through: 'from_host', packet: pingPart(n.echo, 24), action: 'redirect', age: 3000 },
        { say: 'first of another type', through: 'from_host', packet: pingPart(200, 0), ...DENIED },
        {
          say: 'last, as if it were a ping',
          through: 'from_host',
          packet: pingPart(200, 24),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
      ],
    },
    {
      name: `${f.name}: nothing comes to a pod that is not known, or not any more: nor are its rules`,
      given: {},
      steps: [
        { say: 'not known', through: 'to_workload', packet: udp(at(f.node, PORT), at(f.lost, 80)), ...DENIED },
        { say: 'known', through: 'to_workload', packet: udp(at(f.node, PORT), s), action: 'pass', out: 'same' },
        { say: 'gone', through: 'to_workload', packet: udp(at(f.node, PORT + 1), s), ...DENIED, gone: f.pod },
      ],
    },
    {
      name: `${f.name}: what a pod sends to all is asked about, and is from itself`,
      given: { policies: [policy('out', { of: 'pod', egress: [toPort(5353)] })] },
      steps: [
        { say: 'let out', through: 'from_workload', packet: udp(s, at(everybody, 5353)), action: 'pass' },
        { say: 'refused', through: 'from_workload', packet: udp(s, at(everybody, 53)), ...DENIED },
        { say: 'as another', through: 'from_workload', packet: udp(client, at(everybody, 5353)), action: 'drop', reason: 'DROP_SPOOFED' },
      ],
    },
    {
      name: `${f.name}: an error about a flow belongs to it, one about none is asked about`,
      given: { policies: [policy('closed', { of: 'pod', ingress: [], egress: [toPort(PORT)] })] },
      steps: [
        { say: 'about nothing', through: 'from_host', packet: error, ...DENIED },
        { say: 'a flow', through: 'from_workload', packet: udp(s, client), action: 'redirect' },
        { say: 'about it', through: 'from_host', packet: error, action: 'redirect' },
        { say: 'about it, by the pod', through: 'from_workload', packet: errorOfPod(f.client), action: 'redirect' },
        { say: 'about it, but to another', through: 'from_workload', packet: errorOfPod(f.stranger), ...DENIED },
      ],
    },
    {
      name: `${f.name}: an error about a flow that is let be no longer goes nowhere, whichever of them comes first`,
      newer: true,
      given: { policies: [policy('out', { of: 'pod', egress: [toPort(PORT)] })] },
      steps: [
        { say: 'a flow', through: 'from_workload', packet: udp(s, client), action: 'redirect' },
        {
          say: 'about it, let be still',
          through: 'from_host',
          packet: error,
          policies: [policy('out', { of: 'pod', egress: [toPort(1), toPort(PORT)] })],
          action: 'redirect',
        },
        { say: 'closed', through: 'from_host', packet: error, policies: [policy('out', { of: 'pod', egress: [toPort(1)] })], ...DENIED },
        { say: 'a packet of it', through: 'from_workload', packet: udp(s, client), ...DENIED },
        { say: 'about it again', through: 'from_host', packet: error, ...DENIED },
      ],
    },
  ]
}

/** An address of its link is not one that rules know a pod by. */
const onLink: PacketCase = {
  name: 'IPv6: a pod does not reach the host past its rules by addresses of the link',
  given: {},
  steps: [
    {
      say: 'SYN',
      through: 'from_workload',
      packet: tcp(at('fe80::5', PORT), at('fe80::9', 80), { flags: 'S' }),
      action: 'drop',
      reason: 'DROP_SPOOFED',
    },
  ],
}

/** Flows without ports cannot be told apart by their way: each packet is asked about as it comes. */
function moves(f: Family): PacketCase {
  const kinds: readonly (readonly [say: string, packet: Uint8Array])[] = [
    ['of an association', plain(f.pod, f.secondPod, { proto: 132, body: Uint8Array.from([0, 7, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0]) })],
    ['without ports', plain(f.pod, f.secondPod, { proto: 47 })],
    ['ICMP that is no echo', icmp(f.pod, f.secondPod, { type: f.v4 ? 13 : 139 })],
  ]
  return {
    name: `${f.name}: what a pod sends is asked by its own rules, though the same came in the tunnel before`,
    given: { policies: [policy('out', { of: 'pod', egress: [] })] },
    steps: kinds.flatMap(([say, packet]): readonly Step[] => {
      const inner = { inner: packet, vni: VNI, sport: 50_000 }
      const comes: Step = {
        say: `${say}, in the tunnel`,
        through: 'from_host',
        packet: tunnel(f.otherNode, f.node, inner),
        action: 'redirect',
      }
      return [
        comes,
        { say, through: 'from_workload', packet, ...DENIED },
        comes,
        { say: `${say} again`, through: 'from_workload', packet, ...DENIED },
      ]
    }),
  }
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...changes(f), ...otherWays(f), moves(f)]).concat(onLink)
