// SPDX-License-Identifier: Apache-2.0
/** What rules can ask of a flow, and which endpoint's rules are asked. Layer: test. */
import { ANYWHERE } from '#lib/model/policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { icmp, plain, tcp, udp } from '../../../../testkit/packets/packet.ts'
import { PORT, asker } from './asker.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { numbers } from '../icmp/errors.ts'
import { netSide, podSide, policy, portSide, ruleName, toPort } from './policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { at, families } from '../../../../testkit/packets/cluster.ts'

function ends(f: Family): PacketCase[] {
  const { lets, refuses } = asker(f)
  const flow = { proto: 6, from: at(f.secondPod, PORT), to: at(f.pod, 80) }
  const own = (packet: Uint8Array, through: Step['through'], action: Step['action']): Step => ({
    say: 'is no matter of policy',
    through,
    packet,
    action,
  })
  const closed: readonly Policy[] = [policy('closed', { of: 'pod', ingress: [], egress: [] })]
  return [
    {
      name: `${f.name}: a policy that lets no client in drops the packet, and makes no flow`,
      given: { policies: closed },
      steps: [refuses('SYN', 80)],
    },
    {
      name: `${f.name}: what is let be says by which rules, of both ends`,
      given: {
        policies: [
          policy('in', { of: 'pod', ingress: [{ action: 'deny', ...toPort(81) }, toPort(80)] }),
          policy('out', { of: 'second', egress: [{ destination: podSide('pod') }] }),
        ],
      },
      steps: [
        {
          ...lets('SYN', 80),
          flows: [{ ...flow, rules: { egress: ruleName('out', 'egress', 0), ingress: ruleName('in', 'ingress', 1) } }],
        },
        refuses('by the first rule', 81),
        refuses('by none', 82),
      ],
    },
    {
      name: `${f.name}: both ends are here: the source's rules say no`,
      given: {
        policies: [
          policy('in', { of: 'pod', ingress: [{}] }),
          policy('out', { of: 'second', egress: [{ destination: podSide('masked') }] }),
        ],
      },
      steps: [refuses('SYN', 80)],
    },
    {
      name: `${f.name}: both ends are here: the destination's rules say no`,
      given: {
        policies: [policy('in', { of: 'pod', ingress: [{ source: podSide('masked') }] }), policy('out', { of: 'second', egress: [{}] })],
      },
      steps: [refuses('SYN', 80)],
    },
    {
      name: `${f.name}: a pod reaches itself, and the host reaches its pods`,
      given: { policies: closed },
      steps: [
        own(tcp(at(f.pod, PORT), at(f.pod, 80), { flags: 'S' }), 'from_workload', 'redirect'),
        own(tcp(at(f.node, PORT), at(f.pod, 80), { flags: 'S' }), 'to_workload', 'pass'),
      ],
    },
  ]
}

function conditions(f: Family): PacketCase[] {
  const { lets, refuses } = asker(f)
  const n = numbers(f)
  const one = (rule: Parameters<typeof policy>[1]['ingress']) => [policy('in', { of: 'pod', ingress: rule ?? [] })]
  const ping = (type: number, word: number): Uint8Array => icmp(f.secondPod, f.pod, { type, word })
  const other = f.v4 ? 13 : 200
  const sctp = (sport: number, dport: number) =>
    plain(f.secondPod, f.pod, { proto: 132, body: Uint8Array.of(sport >> 8, sport & 255, dport >> 8, dport & 255, 0, 0, 0, 1, 0, 0, 0, 0) })
  return [
    {
      name: `${f.name}: rules by source port`,
      given: { policies: one([{ protocols: [6], source: portSide(PORT), destination: portSide(80) }]) },
      steps: [lets('its own', 80), refuses('another', 80, PORT + 1), refuses('to another', 81)],
    },
    {
      name: `${f.name}: rules by this end's own address`,
      given: { policies: one([{ destination: netSide(f.v4 ? `${f.pod}/32` : `${f.pod}/128`) }]) },
      steps: [lets('of this family', 80)],
    },
    {
      name: `${f.name}: rules by another address than this end's`,
      given: { policies: one([{ destination: netSide(f.v4 ? `${f.secondPod}/32` : `${f.secondPod}/128`) }]) },
      steps: [refuses('not its own', 80)],
    },
    {
      name: `${f.name}: ports of one page, and ranges over many`,
      given: { policies: one([{ action: 'deny', ...toPort(0x1234) }, toPort(0x1233, 0x5678)]) },
      steps: [
        refuses('before', 0x1232),
        lets('first', 0x1233),
        refuses('hole', 0x1234),
        lets('behind the hole', 0x1235),
        lets('far in', 0x3000),
        lets('last', 0x5678),
        refuses('behind', 0x5679),
      ],
    },
    {
      name: `${f.name}: more rules than a block has`,
      newer: true,
      given: { policies: one(Array.from({ length: 2500 }, (_, port) => ({ action: 'allow', ...toPort(10_000 + port) }))) },
      steps: [
        lets('first block', 10_000),
        lets('end of a block', 11_023),
        lets('next', 11_024),
        lets('last', 12_499),
        refuses('none', 12_500),
      ],
    },
    {
      name: `${f.name}: what a tier passes the next decides`,
      given: {
        policies: [
          policy('first', {
            of: 'pod',
            tier: 'adminnetworkpolicy',
            ingress: [{ action: 'pass', ...toPort(80, 81) }, { action: 'deny', ...toPort(80, 82) }, toPort(83)],
          }),
          policy('second', { of: 'pod', ingress: [{ action: 'deny', ...toPort(81) }, toPort(80, 90)] }),
        ],
      },
      steps: [
        {
          ...lets('passed, let in', 80),
          flows: [{ proto: 6, from: at(f.secondPod, PORT), to: at(f.pod, 80), rules: { ingress: ruleName('second', 'ingress', 1) } }],
        },
        refuses('passed, refused', 81),
        refuses('refused at once', 82),
        lets('let in at once', 83),
        lets('at the end of the first', 84),
        refuses('let in by no rule', 91),
      ],
    },
    {
      name: `${f.name}: rules by a stranger's prefix, the longest first`,
      given: {
        policies: one([
          { action: 'deny', source: netSide(f.v4 ? '192.168.50.101/32' : 'fd00:50::101/128') },
          { source: netSide(f.v4 ? '192.168.50.96/27' : 'fd00:50::100/120') },
        ]),
      },
      steps: [
        { say: 'within', through: 'from_host', packet: udp(at(f.client, PORT), at(f.pod, 80)), action: 'redirect' },
        {
          say: 'but for one',
          through: 'from_host',
          packet: udp(at(f.directClient, PORT), at(f.pod, 80)),
          action: 'drop',
          reason: 'DROP_POLICY',
        },
        { say: 'without', through: 'from_host', packet: udp(at(f.otherNode, PORT), at(f.pod, 80)), action: 'drop', reason: 'DROP_POLICY' },
      ],
    },
    {
      name: `${f.name}: ping by type, and its answers`,
      given: { policies: [...one([{ icmp: { type: n.echo, code: 0 } }]), policy('out', { of: 'second', ingress: [] })] },
      steps: [
        { say: 'request', through: 'from_workload', packet: ping(n.echo, 0x0101_0001), action: 'redirect' },
        {
          say: 'reply',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: n.reply, word: 0x0101_0001 }),
          action: 'redirect',
        },
        {
          say: 'reply after a while',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: n.reply, word: 0x0101_0001 }),
          action: 'redirect',
          age: 3000,
        },
        {
          say: 'a reply without a request',
          through: 'from_workload',
          packet: ping(n.reply, 0x0202_0001),
          action: 'drop',
          reason: 'DROP_POLICY',
        },
        {
          say: 'with another code',
          through: 'from_workload',
          packet: icmp(f.secondPod, f.pod, { type: n.echo, code: 1, word: 0x0303_0001 }),
          action: 'drop',
          reason: 'DROP_POLICY',
        },
        {
          say: 'the other way',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: n.echo, word: 0x0404_0001 }),
          action: 'drop',
          reason: 'DROP_POLICY',
        },
      ],
    },
    {
      name: `${f.name}: messages without an id are asked about one by one`,
      given: { policies: one([{ icmp: { type: other, code: undefined } }]) },
      steps: [
        { say: 'let in', through: 'from_workload', packet: ping(other, 0), action: 'redirect' },
        {
          say: 'another type between the same two',
          through: 'from_workload',
          packet: ping(other + 4, 0),
          action: 'drop',
          reason: 'DROP_POLICY',
        },
      ],
    },
    {
      name: `${f.name}: an association by its port`,
      given: { policies: one([{ protocols: [132], destination: { ...ANYWHERE, ports: [{ from: 80, to: 80 }] } }]) },
      steps: [
        { say: 'let in', through: 'from_workload', packet: sctp(PORT, 80), action: 'redirect' },
        { say: 'another between the same two', through: 'from_workload', packet: sctp(PORT, 81), action: 'drop', reason: 'DROP_POLICY' },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...ends(f), ...conditions(f)])
