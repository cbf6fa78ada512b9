// SPDX-License-Identifier: Apache-2.0
/** Tables of compiled policy and packets → the evaluator's verdicts and what differs. Layer: test. */
import { isWithin, parseAddr, tryParseAddr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { FieldError, asNet, asRecord, each, integer, only, record, text } from '#lib/kube/parse/fields.ts'
import type { Raw } from '#lib/kube/parse/fields.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Action, IcmpMatch, NamedPort, PortMatch, Rule, Side } from '#lib/model/policy.ts'
import { and, equals, or } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import type { Hit, Judgement, Line, RuleList, TierLine } from '#lib/policy/walk-rules.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Peers } from '#lib/policy/peers.ts'
import { judgeStages } from '#lib/policy/stages.ts'
import type { Passing, Stages } from '#lib/policy/stages.ts'

/** A policy with the numbers that its rules are known by; -1 where none is given. */
export interface Numbered {
  readonly name: string
  readonly ids: readonly number[]
}

/** One line for each packet that is judged otherwise than the table says. */
export function packetMismatches(raw: Raw): { readonly packets: number; readonly wrong: readonly string[] } {
  const wrong: string[] = []
  let packets = 0
  for (const entry of each(raw, 'cases', asRecord)) {
    const id = text(entry, 'id') ?? ''
    const peers = peersOf(record(entry, 'ipSets'))
    const policy = record(entry, 'policy')
    const stages = stagesOf(policy)
    for (const packet of each(entry, 'packets', asRecord)) {
      packets++
      const judgement = judgeStages(stages, passingOf(packet, policy), peers)
      const differs = difference(judgement, packet, policy)
      if (differs !== undefined) wrong.push(`${id} (${text(entry, 'name') ?? ''}): ${JSON.stringify(packet)}: ${differs}`)
    }
  }
  return { packets, wrong }
}

function difference(judgement: Judgement<Numbered>, packet: Raw, policy: Raw): string | undefined {
  if (judgement.action !== text(packet, 'verdict')) return `got ${judgement.action}`
  if (packet['ruleIdsHit'] === undefined) return undefined
  const wanted = each(packet, 'ruleIdsHit', Number)
  const got = judgement.hits.map((hit) => idOf(hit, policy))
  return wanted.join() === got.join() ? undefined : `got rules ${got.join()}`
}

function idOf(hit: Hit<Numbered>, policy: Raw): number {
  switch (hit.kind) {
    case 'rule':
      return hit.policy.ids[hit.at] ?? -1
    case 'tier-end':
      return integer(named(each(policy, 'tiers', asRecord), hit.tier), '_endRuleId') ?? -1
    case 'profile':
      return integer(each(named(each(policy, 'profiles', asRecord), hit.profile), 'rules', asRecord)[hit.at] ?? {}, '_matchId') ?? -1
    case 'end':
      return integer(policy, '_noProfileMatchId') ?? -1
  }
}

function named(all: readonly Raw[], name: string): Raw {
  return all.find((one) => one['name'] === name) ?? {}
}

/** In an untracked program the normal tiers are the untracked ones: they go before everything and decide only what
 * they speak of. */
function stagesOf(policy: Raw): Stages<Numbered> {
  const tiers = (key: string): readonly TierLine<Numbered>[] => each(policy, key, (value) => tierOf(asRecord(value)))
  const open = (key: string): Line<Numbered> => ({ tiers: tiers(key), profiles: [], end: 'allow' })
  const closed = (tierKey: string, profileKey: string): Line<Numbered> => ({
    tiers: tiers(tierKey),
    profiles: each(policy, profileKey, (value) => profileOf(asRecord(value))),
    end: 'deny',
  })
  if (policy['forXDP'] === true) return { early: open('hostNormalTiers'), forward: undefined, normal: undefined, workload: undefined }
  return {
    early: open('hostPreDnatTiers'),
    forward: open('hostForwardTiers'),
    normal: policy['suppressNormalHostPolicy'] === true ? undefined : closed('hostNormalTiers', 'hostProfiles'),
    workload: policy['forHostInterface'] === true ? undefined : closed('tiers', 'profiles'),
  }
}

function tierOf(raw: Raw): TierLine<Numbered> {
  const policies = each(raw, 'policies', (value) => policyOf(asRecord(value)))
  return { tier: text(raw, 'name') ?? '', policies, end: text(raw, 'endAction') === 'pass' ? 'pass' : 'deny' }
}

function policyOf(raw: Raw): RuleList<Numbered> {
  const rules = each(raw, 'rules', asRecord)
  const ids = rules.map((rule) => integer(rule, '_matchId') ?? -1)
  return { of: { name: text(raw, 'name') ?? '', ids }, rules: rules.flatMap((rule, at) => compiledRule(rule, at)) }
}

function profileOf(raw: Raw): RuleList<string> {
  const { of, rules } = policyOf(raw)
  return { of: of.name, rules }
}

const ACTIONS: ReadonlyMap<string, Action> = new Map([
  ['', 'allow'],
  ['allow', 'allow'],
  ['deny', 'deny'],
  ['pass', 'pass'],
  ['next-tier', 'pass'],
])

const ENDS = { source: 'Src', destination: 'Dst' } as const

const FIELDS = [
  'action',
  '_matchId',
  'ipVersion',
  'protocol',
  'notProtocol',
  ...['icmp', 'notIcmp'].flatMap((key) => [`${key}Type`, `${key}TypeCode`]),
]

/** A rule that logs decides nothing. */
function compiledRule(raw: Raw, at: number): readonly Rule[] {
  only(raw, [...FIELDS, ...sideFields('src'), ...sideFields('dst')])
  const word = (text(raw, 'action') ?? '').toLowerCase()
  if (word === 'log') return []
  const action = ACTIONS.get(word)
  if (action === undefined) throw new FieldError('action', `${word} is unknown`)
  const [protocol, not] = [protocolOf(raw, 'protocol'), protocolOf(raw, 'notProtocol')]
  return [
    ruleOf(at, {
      action,
      protocols: protocol === undefined ? undefined : [protocol],
      notProtocols: not === undefined ? [] : [not],
      icmp: icmpOf(raw, 'icmp'),
      notIcmp: icmpOf(raw, 'notIcmp'),
      source: sideOf(raw, 'source'),
      destination: sideOf(raw, 'destination'),
    }),
  ]
}

function sideFields(end: 'src' | 'dst'): readonly string[] {
  const plain = ['Net', 'Ports', 'IpSetIds', 'NamedPortIpSetIds', 'IpPortSetIds']
  const capital = end === 'src' ? 'Src' : 'Dst'
  return plain.flatMap((name) => [end + name, `not${capital}${name}`])
}

const PROTOCOLS: ReadonlyMap<string, number> = new Map([
  ['icmp', 1],
  ['tcp', 6],
  ['udp', 17],
  ['icmpv6', 58],
  ['sctp', 132],
  ['udplite', 136],
])

function protocolOf(raw: Raw, key: string): number | undefined {
  if (raw[key] === undefined) return undefined
  const fields = only(record(raw, key), ['name', 'number'])
  const number = integer(fields, 'number') ?? PROTOCOLS.get((text(fields, 'name') ?? '').toLowerCase())
  if (number === undefined) throw new FieldError(key, 'is unknown')
  return number
}

function icmpOf(raw: Raw, key: string): IcmpMatch | undefined {
  const type = integer(raw, `${key}Type`)
  if (type !== undefined) return { type, code: undefined }
  if (raw[`${key}TypeCode`] === undefined) return undefined
  const both = record(raw, `${key}TypeCode`)
  return { type: integer(both, 'type') ?? 0, code: integer(both, 'code') ?? 0 }
}

/** A set of addresses is a label here, a set of addresses with ports a named port or, as a whole, a service. */
function sideOf(raw: Raw, end: 'source' | 'destination'): Side {
  const short = end === 'source' ? 'src' : 'dst'
  const field = (name: string): string => short + name
  const not = (name: string): string => `not${ENDS[end]}${name}`
  const names = (key: string): readonly string[] => each(raw, key, String)
  const ports = (portKey: string, namedKey: string): readonly PortMatch[] => [
    ...each(raw, portKey, (value) => rangeOf(asRecord(value))),
    ...names(namedKey).map((name) => ({ name })),
  ]
  const nets = each(raw, field('Net'), asNet)
  const wanted = ports(field('Ports'), field('NamedPortIpSetIds'))
  const services = names(field('IpPortSetIds'))
  if (services.length > 1 || names(not('IpPortSetIds')).length > 0) throw new FieldError(field('IpPortSetIds'), 'more than one')
  return {
    ...ANYWHERE,
    selector: some(names(field('IpSetIds')), and),
    notSelector: some(names(not('IpSetIds')), or),
    nets: nets.length === 0 ? undefined : nets,
    notNets: each(raw, not('Net'), asNet),
    ports: wanted.length === 0 ? undefined : wanted,
    notPorts: ports(not('Ports'), not('NamedPortIpSetIds')),
    services: services.length === 0 ? undefined : services.map((name) => ({ namespace: '', name })),
  }
}

function some(sets: readonly string[], join: (...parts: Selector[]) => Selector): Selector | undefined {
  return sets.length === 0 ? undefined : join(...sets.map((set) => equals(set, 'member')))
}

function rangeOf(raw: Raw): PortMatch {
  return { from: integer(raw, 'first') ?? 0, to: integer(raw, 'last') ?? 0 }
}

interface Member {
  readonly set: string
  readonly net: Cidr
  readonly port: NamedPort | undefined
}

/** "10.0.0.0/8", or "10.0.0.2/32,tcp:80" */
function peersOf(sets: Raw): Peers {
  const members = Object.keys(sets).flatMap((set) => each(sets, set, (value) => memberOf(set, String(value))))
  const at = (addr: Addr): readonly Member[] => members.filter(({ net }) => isWithin([net], addr))
  return {
    labels: (addr) => [new Map(at(addr).map(({ set }) => [set, 'member']))],
    nodes: () => [],
    ports: (addr) => at(addr).flatMap(({ port }) => port ?? []),
    isEndpointOf: (service, addr, port) =>
      at(addr).some((member) => member.set === service && (port === undefined || isPortOf(member, port))),
  }
}

function isPortOf({ port }: Member, wanted: { readonly protocol: number; readonly port: number }): boolean {
  return port?.protocol === wanted.protocol && port.port === wanted.port
}

function memberOf(set: string, member: string): Member {
  const [net = '', port] = member.split(',')
  if (port === undefined) return { set, net: asNet(net), port }
  const [protocol = '', number = ''] = port.split(':')
  const named = { name: set, protocol: PROTOCOLS.get(protocol) ?? Number(protocol), port: Number(number) }
  return { set, net: asNet(net), port: named as NamedPort }
}

function passingOf(raw: Raw, policy: Raw): Passing {
  const icmp = raw['icmpType'] === undefined ? undefined : { type: integer(raw, 'icmpType') ?? 0, code: integer(raw, 'icmpCode') ?? 0 }
  const packet: Packet = {
    src: parseAddr(text(raw, 'src') ?? ''),
    dst: parseAddr(text(raw, 'dst') ?? ''),
    protocol: integer(raw, 'protocol') ?? 0,
    sport: integer(raw, 'sport') ?? 0,
    dport: integer(raw, 'dport') ?? 0,
    icmp,
  }
  const dst = tryParseAddr(text(raw, 'preNATDst') ?? '') ?? packet.dst
  const before = { ...packet, dst, dport: integer(raw, 'preNATDport') ?? packet.dport }
  return { packet, before, ofHost: raw['dstIsHost'] === true || raw['srcIsHost'] === true || policy['forXDP'] === true }
}
