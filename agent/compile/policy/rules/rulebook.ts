// SPDX-License-Identifier: Apache-2.0
/** Policies, tiers, profiles and services, and their rules expanded once for all endpoints. Layer: agent/compile
 * (pure). */
import type { SlicedValues } from '#lib/base/async/slices.ts'
import { tiersInOrder } from '#lib/model/policy-order.ts'
import { DIRECTIONS, realKind } from '#lib/model/policy.ts'
import type { Direction, NamedPort, Policy, PortMatch, Profile, Rule, Tier } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { portsByName, portsOfName, type ServicePort } from '../identities/predicates.ts'
import { LazyList } from './lazy-list.ts'
import { ExpansionLimit } from './expansion-limit.ts'
import { PortLists } from './port-lists.ts'
import { CUT, expandRule } from './expand.ts'
import type { ExpandedRule, Expansion, Meanings, Way } from './expand.ts'
import type { Rules } from './groups.ts'
import { portsText } from '../identities/endpoint-profiles.ts'
import type { ServicePeers } from '../policy-update.ts'

/** A policy's or profile's rules, and what they were made into. */
interface Entry {
  readonly ref: string
  /** the namespace of a policy that has one */
  readonly owner: string | undefined
  readonly rules: { readonly ingress: readonly Rule[] | undefined; readonly egress: readonly Rule[] | undefined }
  /** names of ports, and services, that its rules speak of */
  readonly names: ReadonlySet<string>
  /** those that mean own ports: where a selector stands they are asked of the address */
  readonly ownNames: Readonly<Record<Direction, ReadonlySet<string>>>
  readonly services: ReadonlySet<string>
  /** by direction, and by own ports where their names matter */
  readonly expanded: Map<string, SlicedValues<ExpandedRule>>
}

export class Rulebook implements Rules {
  readonly policies = new Map<string, Policy>()
  readonly services = new Map<string, ServicePeers>()
  readonly #tiers = new Map<string, Tier>()
  readonly #entries = new Map<string, Entry>()
  readonly #replaced = new Map<string, number>()
  readonly #named: Meanings['portsNamed']
  #inOrder: readonly Tier[] = tiersInOrder(new Map())

  constructor(portsNamed: Meanings['portsNamed']) {
    this.#named = portsNamed
  }

  get tiers(): readonly Tier[] {
    return this.#inOrder
  }

  setTier(name: string, tier: Tier | undefined): void {
    if (tier === undefined) this.#tiers.delete(name)
    else this.#tiers.set(name, tier)
    this.#inOrder = tiersInOrder(this.#tiers)
  }

  setPolicy(key: string, policy: Policy | undefined): void {
    const before = this.policies.get(key)
    if (before !== undefined) this.#count(before, -1)
    if (policy === undefined) {
      this.policies.delete(key)
      this.#entries.delete(key)
      return
    }
    this.#count(policy, 1)
    this.policies.set(key, policy)
    this.#entries.set(key, entryOf(refText(policy), policy, policy.namespace || undefined))
  }

  setProfile(name: string, profile: Profile | undefined): void {
    if (profile === undefined) this.#entries.delete(`Profile/${name}`)
    else this.#entries.set(`Profile/${name}`, entryOf(`Profile/${name}`, profile, undefined))
  }

  /** Is it one of those that stand when staged policies are real? */
  isStaged(policy: Policy): boolean {
    return policy.staged === undefined ? !this.#replaced.has(refText(policy)) : policy.staged === 'Set'
  }

  /** What names of ports, or services, mean has changed: policies whose rules are others now. */
  meansOther(names: ReadonlySet<string>, services: ReadonlySet<string>): ReadonlySet<string> {
    const changed = new Set<string>()
    if (names.size + services.size === 0) return changed
    for (const [key, entry] of this.#entries) {
      if (!haveCommon(entry.names, names) && !haveCommon(entry.services, services)) continue
      entry.expanded.clear()
      changed.add(key)
    }
    return changed
  }

  policy(policy: Policy, direction: Direction, ownPorts: readonly NamedPort[] | undefined): SlicedValues<ExpandedRule> {
    const entry = this.#entries.get(refText(policy))
    return entry === undefined ? [] : this.#expand(entry, direction, ownPorts)
  }

  profile(name: string, direction: Direction, ownPorts: readonly NamedPort[] | undefined): SlicedValues<ExpandedRule> | undefined {
    const entry = this.#entries.get(`Profile/${name}`)
    return entry && this.#expand(entry, direction, ownPorts)
  }

  #expand(entry: Entry, direction: Direction, ownPorts: readonly NamedPort[] | undefined): SlicedValues<ExpandedRule> {
    const key = `${direction} ${ownPorts === undefined ? 'by address' : portsText(named(ownPorts, entry.ownNames[direction]))}`
    const known = entry.expanded.get(key)
    if (known !== undefined) return known
    const expanded = new LazyList(this.#rulesOf(entry, direction, ownPorts && portsByName(ownPorts)))
    entry.expanded.set(key, expanded)
    return expanded
  }

  *#rulesOf({ ref, owner, rules }: Entry, direction: Direction, ownPorts: Expansion['ownPorts']): SlicedValues<ExpandedRule> {
    const of = {
      direction,
      owner,
      meanings: this.#meanings,
      ownPorts,
      effort: new ExpansionLimit(),
      lists: new PortLists(),
      shared: new Map<readonly PortMatch[], readonly Way[]>(),
    }
    for (const rule of rules[direction] ?? []) {
      yield* expandRule(rule, { ...of, name: `${ref} ${direction} ${rule.at}` })
      if (!of.effort.isSpent) continue
      yield CUT
      return
    }
  }

  readonly #meanings: Meanings = {
    portsNamed: (name, isFound) => this.#named(name, isFound),
    portsOf: (services) => {
      const ports = new Map<number, ServicePort>()
      for (const service of services)
        for (const slice of this.services.get(service)?.slices ?? []) for (const [number, port] of slice.ports) ports.set(number, port)
      return [...ports].sort((a, b) => a[0] - b[0]).map(([, port]) => port)
    },
  }

  /** Staged policies to learn or to ignore replace no policy. */
  #count(staged: Policy, by: number): void {
    if (staged.staged !== 'Set' && staged.staged !== 'Delete') return
    const ref = refText({ ...staged, kind: realKind(staged.kind) })
    const count = (this.#replaced.get(ref) ?? 0) + by
    if (count === 0) this.#replaced.delete(ref)
    else this.#replaced.set(ref, count)
  }
}

function entryOf(ref: string, rules: Entry['rules'], owner: string | undefined): Entry {
  // rules that were one share their list of ports
  const lists = new Set<readonly PortMatch[]>()
  const own = { ingress: new Set<readonly PortMatch[]>(), egress: new Set<readonly PortMatch[]>() }
  const services = new Set<string>()
  for (const direction of DIRECTIONS)
    for (const { source, destination } of rules[direction] ?? []) {
      const { selector, ports, notPorts } = direction === 'ingress' ? destination : source
      if (selector === undefined) for (const list of [ports ?? [], notPorts]) own[direction].add(list)
      for (const side of [source, destination]) {
        if (side.ports !== undefined) lists.add(side.ports)
        lists.add(side.notPorts)
        for (const { namespace, name } of side.services ?? []) services.add(`${namespace}/${name}`)
      }
    }
  const ownNames = { ingress: namesIn(own.ingress), egress: namesIn(own.egress) }
  return { ref, owner, rules, names: namesIn(lists), ownNames, services, expanded: new Map() }
}

function namesIn(lists: Iterable<readonly PortMatch[]>): ReadonlySet<string> {
  const names = new Set<string>()
  for (const list of lists) for (const match of list) if ('name' in match) names.add(match.name)
  return names
}

/** Those that have one of the names. */
function named(ports: readonly NamedPort[], names: ReadonlySet<string>): readonly NamedPort[] {
  if (names.size > ports.length) return ports.filter(({ name }) => names.has(name))
  return [...names].flatMap((name) => portsOfName(ports, name))
}

function haveCommon(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const [few, many] = a.size < b.size ? [a, b] : [b, a]
  return [...few].some((value) => many.has(value))
}
