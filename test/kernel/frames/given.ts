// SPDX-License-Identifier: Apache-2.0
/** Draws what is in the maps while frames are sent: backends, policies of pods and of the host, failsafe ports.
 * Layer: test. */
import type { FailsafePort } from '#lib/model/failsafe.ts'
import { FAILSAFE_PORTS } from '#lib/base/bpf-constants.ts'
import { parsePort } from '#lib/base/ip.ts'
import type { Policy, Rule, Scope } from '#lib/model/policy.ts'
import { ICMP, ICMPV6, SCTP, TCP, UDP } from '#lib/policy/packet.ts'
import { HOST } from '../../../testkit/packets/policy.ts'
import type { Given } from '../../../testkit/packets/case.ts'
import { netSide, podSide, policy, portSide } from '../packets/policy/policies.ts'
import { families } from '../../../testkit/packets/cluster.ts'
import type { Dice } from './dice.ts'

const TUNNEL_PORT = 4789

export function givenOf(dice: Dice): Given {
  const backends = families.flatMap((f) => {
    const remote = { addr: f.remotePod, port: 8080, node: f.otherNode }
    return dice.one([
      [{ addr: f.pod, port: 8080 }],
      [remote],
      [{ addr: f.pod, port: 80 }, remote],
      [{ addr: f.otherNode, port: TUNNEL_PORT }],
      [],
    ])
  })
  // programs ask a compressed table first, in which those of UDP are like ports of frames
  const port = (ofTcp: number, ofUdp: number): FailsafePort => {
    const protocol = dice.one([TCP, UDP])
    return { protocol, port: parsePort(protocol === TCP ? ofTcp : ofUdp), net: undefined }
  }
  const failsafes = dice.chance(25)
    ? { inbound: [port(22, 80 + FAILSAFE_PORTS)], outbound: [port(81, 42_000 - FAILSAFE_PORTS)] }
    : { inbound: [], outbound: [] }
  return { backends, policies: policiesOf(dice), failsafes }
}

function policiesOf(dice: Dice): readonly Policy[] {
  const of = (name: string, subject: string, scope: Scope = 'normal'): Policy =>
    policy(name, {
      of: subject,
      scope,
      tier: dice.chance(80) ? 'default' : 'adminnetworkpolicy',
      ...(dice.chance(80) ? { ingress: rulesOf(dice) } : {}),
      ...(dice.chance(45) && scope !== 'preDNAT' ? { egress: rulesOf(dice) } : {}),
    })
  const pods = ['pod', 'pod', 'second', 'masked'].flatMap((name, at) => (dice.chance(60) ? [of(`${name}${at}`, name)] : []))
  const scopes: readonly Scope[] = ['normal', 'normal', 'forward', 'preDNAT', 'doNotTrack']
  const hosts = dice.chance(30) ? scopes.flatMap((scope, at) => (dice.chance(40) ? [of(`host${at}`, HOST, scope)] : [])) : []
  return [...pods, ...hosts]
}

function rulesOf(dice: Dice): readonly Partial<Rule>[] {
  return Array.from({ length: dice.below(4) }, (): Partial<Rule> => {
    const f = dice.one(families)
    const source = dice.weighted<Partial<Rule>>([
      [6, () => ({})],
      [2, () => ({ source: podSide(dice.one(['pod', 'second', 'remote'])) })],
      [1, () => ({ source: netSide(`${dice.one([f.client, f.remotePod, f.otherNode, f.node])}/${f.v4 ? 32 : 128}`) })],
    ])
    const what = dice.weighted<Partial<Rule>>([
      [
        6,
        () => ({
          protocols: dice.one([[TCP], [UDP], [TCP, UDP], [SCTP]]),
          destination: portSide(dice.one([80, 80, 81, 8080, 22, TUNNEL_PORT])),
        }),
      ],
      [2, () => ({ protocols: [dice.one([TCP, UDP, ICMP, ICMPV6, 47])] })],
      [1, () => ({ protocols: [f.v4 ? ICMP : ICMPV6], icmp: { type: f.v4 ? 8 : 128, code: dice.chance(50) ? 0 : undefined } })],
      [1, () => ({})],
    ])
    return { action: dice.one(['allow', 'allow', 'allow', 'deny', 'pass']), ...source, ...what }
  })
}
