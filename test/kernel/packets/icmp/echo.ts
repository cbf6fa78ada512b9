// SPDX-License-Identifier: Apache-2.0
/** ICMP whose type and code are no part of a flow's key: a message that is allowed opens nothing for one that is not.
 * Layer: test. */
import type { Policy, Rule, Scope } from '#lib/model/policy.ts'
import { icmp, tunnel } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, ProgramName, Step } from '../../../../testkit/packets/case.ts'
import { HOST } from '../../../../testkit/packets/policy.ts'
import { DENIED, policy } from '../policy/policies.ts'
import type { PolicyGiven } from '../policy/policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { VNI, at, families } from '../../../../testkit/packets/cluster.ts'
import { numbers } from './errors.ts'

const ID = 0x0102

interface Way {
  readonly say: string
  readonly from: string
  readonly to: string
  readonly through: ProgramName
  readonly passes: 'pass' | 'redirect'
  /** by the tunnel, from this node */
  readonly by?: string
  readonly given: (rules: readonly Partial<Rule>[]) => PolicyGiven
}

/** All ways on which rules are asked about an echo. */
function waysOf(f: Family): readonly Way[] {
  const ingress =
    (of: string, scope: Scope = 'normal'): Way['given'] =>
    (rules) => ({ of, scope, ingress: rules })
  const egress =
    (of: string): Way['given'] =>
    (rules) => ({ of, egress: rules })
  const ofPod = { through: 'from_workload', passes: 'redirect' } as const
  return [
    { say: "a pod's ingress, of a pod here", from: f.secondPod, to: f.pod, ...ofPod, given: ingress('pod') },
    { say: "a pod's egress, to a pod here", from: f.secondPod, to: f.pod, ...ofPod, given: egress('second') },
    { say: "a pod's egress, to a host", from: f.secondPod, to: f.client, ...ofPod, given: egress('second') },
    { say: "a masqueraded pod's egress", from: f.maskedPod, to: f.client, ...ofPod, given: egress('masked') },
    { say: "a pod's ingress, of a host", from: f.client, to: f.pod, through: 'from_host', passes: 'redirect', given: ingress('pod') },
    {
      say: "a pod's ingress, out of the tunnel",
      from: f.overlayPod,
      to: f.pod,
      through: 'from_host',
      passes: 'redirect',
      by: f.otherNode,
      given: ingress('pod'),
    },
    { say: 'the host, coming in', from: f.client, to: f.node, through: 'from_host', passes: 'pass', given: ingress(HOST) },
    { say: 'the host, going out', from: f.node, to: f.client, through: 'to_host', passes: 'pass', given: egress(HOST) },
    {
      say: 'the host, of what is forwarded',
      from: f.client,
      to: f.pod,
      through: 'from_host',
      passes: 'redirect',
      given: ingress(HOST, 'forward'),
    },
    { say: 'the host, before DNAT', from: f.client, to: f.node, through: 'from_host', passes: 'pass', given: ingress(HOST, 'preDNAT') },
    {
      say: 'the host, before DNAT, to a pod',
      from: f.client,
      to: f.pod,
      through: 'from_host',
      passes: 'redirect',
      given: ingress(HOST, 'preDNAT'),
    },
  ]
}

/** The same on each way. */
function onWay(f: Family, way: Way): PacketCase[] {
  const n = numbers(f)
  const sends = (say: string, type: number, code: number): Pick<Step, 'say' | 'through' | 'packet'> => {
    const inner = icmp(way.from, way.to, { type, code, word: ID * 0x1_0000 + 1 })
    return { say, through: way.through, packet: way.by === undefined ? inner : tunnel(way.by, f.node, { inner, vni: VNI, sport: 50_000 }) }
  }
  const passes = { action: way.passes } as const
  const without = (code: number | undefined) => [policy('rules', way.given([{ icmp: { type: n.echo, code }, action: 'deny' }, {}]))]
  const flow = { proto: f.v4 ? 1 : 58, from: at(way.from, ID), to: at(way.to, ID) }
  return [
    {
      name: `${f.name}: an echo reply opens no flow in which denied requests pass: ${way.say}`,
      given: { policies: without(undefined) },
      steps: [
        { ...sends('reply', n.reply, 0), ...passes, flows: [{ ...flow, gone: true }] },
        { ...sends('request', n.echo, 0), ...DENIED },
        { ...sends('reply again', n.reply, 0), ...passes },
        { ...sends('request again', n.echo, 0), ...DENIED },
      ],
    },
    {
      name: `${f.name}: an echo request opens no flow in which one of a denied code passes: ${way.say}`,
      given: { policies: without(0) },
      steps: [
        { ...sends('request that is allowed', n.echo, 1), ...passes },
        { ...sends('denied one', n.echo, 0), ...DENIED },
        { ...sends('the allowed one again', n.echo, 1), ...passes },
        { ...sends('a reply', n.reply, 0), ...passes },
        { ...sends('the denied one again', n.echo, 0), ...DENIED },
      ],
    },
  ]
}

/** What answers nothing asks for no answer. */
function unasked(f: Family): PacketCase[] {
  const n = numbers(f)
  const kinds = [
    ['an echo reply', n.echo, n.reply],
    [f.v4 ? 'a timestamp reply' : 'a node information reply', f.v4 ? 13 : 139, f.v4 ? 14 : 140],
  ] as const
  return kinds.map(([say, asked, reply]) => {
    const sends = (what: string, from: string, type: number): Pick<Step, 'say' | 'through' | 'packet'> => ({
      say: what,
      through: 'from_workload',
      packet: icmp(from, from === f.pod ? f.secondPod : f.pod, { type, word: asked === n.echo ? 0x0101_0001 : 0 }),
    })
    return {
      name: `${f.name}: ${say} that nobody asked for lets nothing back in`,
      given: { policies: [policy('in', { of: 'second', ingress: [] })] },
      steps: [
        { ...sends('reply', f.secondPod, reply), action: 'redirect' },
        { ...sends('reply back', f.pod, reply), ...DENIED },
        { ...sends('request back', f.pod, asked), ...DENIED },
        { ...sends('request', f.secondPod, asked), action: 'redirect' },
        { ...sends('its answer', f.pod, reply), action: 'redirect' },
      ],
    }
  })
}

/** When rules change they are asked of an answer as of what it answers. */
function afterChange(f: Family): PacketCase[] {
  const n = numbers(f)
  const questions = [
    ['an echo', n.echo, n.reply, 0x0101_0001],
    [f.v4 ? 'a timestamp' : 'node information', f.v4 ? 13 : 139, f.v4 ? 14 : 140, 0],
  ] as const
  const rules = (type: number): readonly Policy[] => [
    policy('in', { of: 'pod', ingress: [{ icmp: { type, code: undefined }, action: 'deny' }, {}] }),
  ]
  return questions.flatMap(([say, asked, reply, word]) =>
    questions.map(([denies, denied]): PacketCase => ({
      name: `${f.name}: when rules come to deny ${denies}, the answer to ${say} ${denied === asked ? 'is denied' : 'passes'}`,
      given: { policies: [policy('in', { of: 'pod', ingress: [{}] })] },
      steps: [
        { say: 'question', through: 'from_workload', packet: icmp(f.secondPod, f.pod, { type: asked, word }), action: 'redirect' },
        {
          say: 'answer',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: reply, word }),
          policies: rules(denied),
          ...(denied === asked ? DENIED : { action: 'redirect' }),
        },
      ],
    })),
  )
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [
  ...waysOf(f).flatMap((way) => onWay(f, way)),
  ...unasked(f),
  ...afterChange(f),
])
