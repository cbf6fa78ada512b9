// SPDX-License-Identifier: Apache-2.0
/** A rule as its author wrote it → rules each of which asks its questions apart: of either address, of ports, of
 * source ports. Layer: agent/compile (pure).
 *
 * A name of a port stands for another port on each address that has it, so a rule with one becomes a rule for each
 * port it means, of the addresses on which it means that. Services likewise. */
import type { Sliced, SlicedValues } from '#lib/base/async/slices.ts'
import { fnv1a64 } from '#lib/base/hash.ts'
import { ANY_V4, ANY_V6 } from '#lib/base/ip.ts'
import type { Cidr } from '#lib/base/ip.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Direction, NamedPort, PortMatch, Rule, Side } from '#lib/model/policy.ts'
import { matcherOf } from '#lib/model/selector/matcher.ts'
import type { Matcher } from '#lib/model/selector/matcher.ts'
import { ALL, and, not } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import { predicateOf, selectorKey } from '../identities/predicates.ts'
import type { Condition, Question, ServicePort } from '../identities/predicates.ts'
import type { ExpansionLimit } from './expansion-limit.ts'
import type { PortLists } from './port-lists.ts'
import {
  EVERYTHING,
  except,
  FULL,
  ICMP_PROTOCOLS,
  intersect,
  isNowhere,
  only,
  protocolPortsText,
  PORT_PROTOCOLS,
  rangesOf,
  supportOf,
} from './protocol-ports.ts'
import type { ProtocolPorts, Ranges } from './protocol-ports.ts'

/** `open`: no verdict, the next stage decides. */
export type Outcome = Rule['action'] | 'open'

export interface ExpandedRule {
  readonly action: Outcome
  /** "NetworkPolicy default/web ingress 2": all that a rule became share it */
  readonly name: string
  /** namespace whose policy the rule is of; undefined: the rule is of the cluster or of no policy */
  readonly owner: string | undefined
  readonly peer: readonly Condition[]
  readonly own: readonly Condition[]
  /** by destination port, or ICMP type and code */
  readonly ports: ProtocolPorts
  readonly source: ProtocolPorts
  /** all of the above: equal rules have equal texts */
  readonly text: string
  /** of the text */
  readonly hash: string
}

/** What names stand for. */
export interface Meanings {
  /** ports of that name of all endpoints that are found, each once, sorted */
  readonly portsNamed: (name: string, isFound: Matcher) => Sliced<readonly ServicePort[]>
  /** ports of the services' endpoints, each once, sorted */
  portsOf(services: readonly string[]): readonly ServicePort[]
}

export interface Expansion {
  readonly direction: Direction
  readonly name: string
  readonly owner: string | undefined
  readonly meanings: Meanings
  /** what names of this end's ports mean; undefined: what they mean on the address that the packet has */
  readonly ownPorts: ReadonlyMap<string, readonly NamedPort[]> | undefined
  /** of all rules of the policy in this direction */
  readonly effort: ExpansionLimit
  readonly lists: PortLists
  /** what a list of ports means at this end: rules that were one share it */
  readonly shared: Map<readonly PortMatch[], readonly Way[]>
}

/** One of the ways in which a part of a rule can hold. */
export interface Way {
  readonly conditions: readonly Condition[]
  readonly plane: ProtocolPorts
}

const ANYHOW: readonly Way[] = [{ conditions: [], plane: EVERYTHING }]
const V4_NETS: readonly Cidr[] = [{ addr: ANY_V4, bits: 0 }]
const V6_NETS: readonly Cidr[] = [{ addr: ANY_V6, bits: 0 }]

/** None for a rule that can never hold. No more than are taken are made; they end early where the effort does. */
export function* expandRule(rule: Rule, of: Expansion): Generator<ExpandedRule | undefined, void, undefined> {
  const isIngress = of.direction === 'ingress'
  const whole = planeOf(rule)
  const version = rule.ipVersion === undefined ? [] : [asked({ kind: 'nets', nets: rule.ipVersion === 4 ? V4_NETS : V6_NETS })]
  const sources = yield* partsOf(rule.source, { ...of, isOwn: !isIngress, isDestination: false })
  const destinations = yield* partsOf(rule.destination, { ...of, isOwn: isIngress, isDestination: true })
  for (const source of waysOf(sources, of.effort)) {
    if (source === undefined) {
      yield
      continue
    }
    for (const destination of waysOf(destinations, of.effort)) {
      if (destination === undefined) {
        yield
        continue
      }
      const ports = intersect(intersect(whole, destination.plane), supportOf(source.plane))
      if (isNowhere(ports)) continue
      const [peer, own] = isIngress ? [source, destination] : [destination, source]
      const conditions = { peer: [...version, ...peer.conditions], own: own.conditions }
      const made = withText({ action: rule.action, name: of.name, owner: of.owner, ...conditions, ports, source: source.plane }, of.lists)
      if (!of.effort.write(made.text)) return
      yield made
    }
  }
}

/** Always holds: ends of tiers and the like. */
export function plainRule(action: Outcome, name: string): ExpandedRule {
  return withText({ action, name, owner: undefined, peer: [], own: [], ports: EVERYTHING, source: EVERYTHING })
}

/** In the place of rules for which the effort was not enough. */
export const CUT = plainRule('deny', 'too many combinations')

function withText(rule: Omit<ExpandedRule, 'text' | 'hash'>, lists?: PortLists): ExpandedRule {
  const parts = [
    rule.action,
    rule.name,
    conditionsText(rule.peer),
    conditionsText(rule.own),
    protocolPortsText(rule.ports, lists?.text),
    protocolPortsText(rule.source, lists?.text),
  ]
  const text = parts.join('\n')
  return { ...rule, text, hash: fnv1a64(text) }
}

function conditionsText(conditions: readonly Condition[]): string {
  return conditions.map(({ atom, holds }) => `${holds ? '' : '!'}${atom.key}`).join(' & ')
}

function planeOf(rule: Rule): ProtocolPorts {
  const protocols = rule.protocols === undefined ? EVERYTHING : only(rule.protocols, FULL)
  const others = rule.notProtocols.length === 0 ? EVERYTHING : except(rule.notProtocols, FULL)
  const icmp = rule.icmp === undefined ? EVERYTHING : only(ICMP_PROTOCOLS, icmpRanges(rule.icmp))
  const notIcmp = rule.notIcmp === undefined ? EVERYTHING : except(ICMP_PROTOCOLS, icmpRanges(rule.notIcmp))
  return [others, icmp, notIcmp].reduce(intersect, protocols)
}

function icmpRanges({ type, code }: NonNullable<Rule['icmp']>): Ranges {
  return code === undefined ? [[type * 256, type * 256 + 255]] : [[type * 256 + code, type * 256 + code]]
}

interface SideExpansion extends Expansion {
  readonly isOwn: boolean
  readonly isDestination: boolean
}

/** Lists of ways of which one each must hold. */
function* partsOf(side: Side, of: SideExpansion): Sliced<readonly (readonly Way[])[]> {
  const selector = selectorOf(side)
  if (side.nets?.length === 0 || selector?.op === 'none') return [[]]
  const plain: Condition[] = []
  if (selector !== undefined) plain.push(asked({ kind: 'labels', selector }))
  else if (side.notSelector !== undefined) plain.push(asked({ kind: 'labels', selector: side.notSelector }, false))
  if (side.nodes !== undefined) plain.push(asked({ kind: 'nodes', selector: side.nodes }))
  if (side.nets !== undefined) plain.push(asked({ kind: 'nets', nets: side.nets }))
  if (side.notNets.length > 0) plain.push(asked({ kind: 'nets', nets: side.notNets }, false))
  return [
    [{ conditions: plain, plane: EVERYTHING }],
    yield* namedPortWays({ ...side, selector }, of),
    yield* notPortWays({ ...side, selector }, of),
    serviceWays(side, of),
  ]
}

/** One owner of the address must be all that is asked and none of what is excluded. Without a selector there need
 * not be an owner. */
function selectorOf({ selector, notSelector }: Side): Selector | undefined {
  return selector === undefined || notSelector === undefined ? selector : and(selector, not(notSelector))
}

/** All in which one way of each part holds, as far as the effort goes. */
function waysOf(parts: readonly (readonly Way[])[], effort: ExpansionLimit): SlicedValues<Way> {
  return parts.reduce<SlicedValues<Way>>((ways, part) => both(ways, part, effort), [{ conditions: [], plane: EVERYTHING }])
}

/** Pairs that are tried between two turns of others. */
const PAIRS_A_TURN = 256

/** All pairs, where both hold. */
function* both(a: SlicedValues<Way>, b: readonly Way[], effort: ExpansionLimit): SlicedValues<Way> {
  let tried = 0
  for (const one of a) {
    if (one === undefined) yield
    else
      for (const other of b) {
        if (!effort.spend(1)) return
        if (++tried % PAIRS_A_TURN === 0) yield
        const plane = intersect(one.plane, other.plane)
        if (!isNowhere(plane)) yield { conditions: [...one.conditions, ...other.conditions], plane }
      }
  }
}

/** Ports, and named ports by number: a name is that of an endpoint which the side's selector finds. */
function* namedPortWays({ selector, ports }: Side, of: SideExpansion): Sliced<readonly Way[]> {
  if (ports === undefined) return ANYHOW
  const isShared = isKnownHere(selector, of)
  const known = isShared ? of.shared.get(ports) : undefined
  if (known !== undefined) return known
  const { ranges, plane, names } = of.lists.of(ports)
  const ways: Way[] = ranges.length === 0 ? [] : [{ conditions: [], plane }]
  const meant = meaningsFor(selector, of.meanings)
  for (const name of names) {
    if (!of.effort.spend(1)) break
    const own = ownPortsNamed(name, selector, of)
    if (own !== undefined) for (const port of own) ways.push({ conditions: [], plane: only([port.protocol], one(port)) })
    else
      for (const { port, condition } of yield* meant(name, true)) {
        if (!of.effort.write(condition.atom.key)) break
        ways.push({ conditions: [condition], plane: only([port.protocol], one(port)) })
      }
  }
  if (isShared) of.shared.set(ports, ways)
  return ways
}

type NamedPortMeanings = (name: string, holds: boolean) => Sliced<readonly NamedPortMeaning[]>

interface NamedPortMeaning {
  readonly port: ServicePort
  /** that the address has an endpoint on which the name means this port, or that it has none */
  readonly condition: Condition
}

/** What names of ports mean at one side. Its selector, which may be long, is made ready for all of them once, and an
 * endpoint is asked once. */
function meaningsFor(selector: Selector = ALL, { portsNamed }: Meanings): NamedPortMeanings {
  let ready: { readonly key: string; readonly isFound: Matcher } | undefined
  return function* (name, holds) {
    ready ??= { key: selectorKey(selector), isFound: askedOnce(matcherOf(selector)) }
    const { key, isFound } = ready
    return (yield* portsNamed(name, isFound)).map((port) => ({
      port,
      condition: { atom: predicateOf({ kind: 'port', selector, name, ...port }, key), holds },
    }))
  }
}

function askedOnce(isFound: Matcher): Matcher {
  const answers = new Map<Labels, boolean>()
  return (labels) => {
    const answer = answers.get(labels) ?? isFound(labels)
    answers.set(labels, answer)
    return answer
  }
}

/** Other ports than those any of the names means anywhere; and those, on addresses where it does not mean them. */
function* notPortWays({ selector, notPorts }: Side, of: SideExpansion): Sliced<readonly Way[]> {
  if (notPorts.length === 0) return ANYHOW
  const here: ServicePort[] = []
  const excluded = new Map<string, { readonly port: ServicePort; readonly conditions: Condition[] }>()
  const { ranges, names } = of.lists.of(notPorts)
  const meant = meaningsFor(selector, of.meanings)
  for (const name of names) {
    if (!of.effort.spend(1)) break
    const own = ownPortsNamed(name, selector, of)
    if (own !== undefined) for (const port of own) here.push(port)
    else
      for (const { port, condition } of yield* meant(name, false)) {
        const entry = excluded.get(portText(port)) ?? { port, conditions: [] }
        if (!of.effort.write(condition.atom.key)) break
        entry.conditions.push(condition)
        excluded.set(portText(port), entry)
      }
  }
  const elsewhere = without(except(PORT_PROTOCOLS, ranges), here)
  const there = [...excluded.values()]
  const everywhere = there.map(({ port }) => port)
  return [
    { conditions: [], plane: without(elsewhere, everywhere) },
    ...there.map(({ port, conditions }) => ({ conditions, plane: intersect(elsewhere, only([port.protocol], one(port))) })),
  ]
}

/** Ports count where the service's endpoint is the destination. */
function serviceWays({ services }: Side, of: SideExpansion): readonly Way[] {
  if (services === undefined) return ANYHOW
  const keys = services.map(({ namespace, name }) => `${namespace}/${name}`)
  if (!of.isDestination) return [{ conditions: [asked({ kind: 'services', services: keys, port: undefined })], plane: EVERYTHING }]
  return of.meanings.portsOf(keys).map((port) => ({
    conditions: [asked({ kind: 'services', services: keys, port })],
    plane: only([port.protocol], one(port)),
  }))
}

function asked(question: Question, holds = true): Condition {
  return { atom: predicateOf(question), holds }
}

function without(plane: ProtocolPorts, ports: readonly ServicePort[]): ProtocolPorts {
  const byProtocol = Map.groupBy(ports, ({ protocol }) => protocol)
  return [...byProtocol].reduce((rest, [protocol, some]) => intersect(rest, except([protocol], rangesOf(some.flatMap(one)))), plane)
}

function one({ port }: { readonly port: number }): Ranges {
  return [[port, port]]
}

/** Are names of this end's ports known beforehand? With a selector they are a question about the address. */
function isKnownHere(selector: Selector | undefined, { isOwn, ownPorts }: SideExpansion): boolean {
  return isOwn && ownPorts !== undefined && selector === undefined
}

/** What the name means at this end, where that is known beforehand. */
function ownPortsNamed(name: string, selector: Selector | undefined, of: SideExpansion): readonly ServicePort[] | undefined {
  if (!isKnownHere(selector, of)) return undefined
  return (of.ownPorts?.get(name) ?? []).map(({ protocol, port }) => ({ protocol, port }))
}

function portText({ protocol, port }: ServicePort): string {
  return `${protocol}/${port}`
}
