// SPDX-License-Identifier: Apache-2.0
/** Changes of policies and of what they select → changes of the tables, in an order in which no packet is judged by
 * half of either. Layer: agent/compile (pure).
 *
 * What the tables hold depends on what there is, not on how it came to be; the work of a change is in proportion to
 * what it selects. */
import type { Addr } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import { comparePolicies } from '#lib/model/policy-order.ts'
import { realKind } from '#lib/model/policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector/selector.ts'
import { Addresses } from './identities/addresses.ts'
import type { AddressChanges } from './identities/addresses.ts'
import { distinct } from './identities/predicates.ts'
import type { Predicate } from './identities/predicates.ts'
import { selecting } from './rules/groups.ts'
import { MOST_BLOCKS } from './rules/rule-list.ts'
import { GroupRuleLists, stagedName } from './rules/group-rule-lists.ts'
import { LiveRulesets } from './rulesets/rulesets.ts'
import { NO_LINES, NO_SETS, EndpointGroups } from './rulesets/endpoint-groups.ts'
import type { GroupSets, Members, NewGroup } from './rulesets/endpoint-groups.ts'
import { RulesetAssignment } from './rulesets/assign-rulesets.ts'
import type { DirtyGroups } from './rulesets/assign-rulesets.ts'
import { PolicyQuota, TABLE_SIZES } from './rulesets/policy-quota.ts'
import type { Rows } from './rulesets/policy-quota.ts'
import { Rulebook } from './rules/rulebook.ts'
import { decides } from './rulesets/compile-ruleset.ts'
import { WrittenRows, targetsOf } from './transition/written-rows.ts'
import type { TruncatedRuleLists, QuotaExceeded, PolicySize } from './policy-size.ts'
import { NO_SET } from './tables.ts'
import type { EndValue, HostSlot, HostValue, PolicyRow, PolicyRowOf, PolicyStep, SetId } from './tables.ts'
import { Transition } from './transition/transition.ts'
import type { Plan } from './transition/transition.ts'
import type { PolicyUpdate } from './policy-update.ts'

const HOST_SLOTS = [
  'untrackedIngress',
  'untrackedEgress',
  'earlyIngress',
  'forwardIngress',
  'forwardEgress',
  'normalIngress',
  'normalEgress',
] as const satisfies readonly HostSlot[]

export class PolicyCompiler {
  readonly #addresses = new Addresses((atom) => this.#servicesAddrs(atom))
  readonly #rules = new Rulebook((name, selector) => this.#addresses.things.portsNamed(name, selector))
  readonly #population = new EndpointGroups(this.#addresses)
  readonly #sets = new LiveRulesets(this.#addresses)
  readonly #shown = new WrittenRows()
  readonly #lines: GroupRuleLists
  readonly #regroup: RulesetAssignment

  /** `blocks` of a line are looked through by programs; `sizes`: of their maps. */
  constructor(blocks = MOST_BLOCKS, sizes: Rows = TABLE_SIZES) {
    this.#lines = new GroupRuleLists(this.#rules, blocks)
    const [addresses, population, lines, sets] = [this.#addresses, this.#population, this.#lines, this.#sets]
    const room = new PolicyQuota({
      sizes,
      rulesOf: ({ rules }) => rules.filter(decides).length,
      rowsOf: (line) => sets.rowsOf(line),
      netsOf: (atom) => (atom.question.kind === 'nets' ? distinct(atom.question.nets).size : new Set(this.#servicesAddrs(atom)).size),
    })
    this.#regroup = new RulesetAssignment({ addresses, population, lines, sets, room })
  }

  /** Steps to be taken one after the other, none of them empty. The first time it is everything. */
  change(updates: Iterable<PolicyUpdate>): readonly PolicyStep[] {
    const touched = nothingTouched()
    for (const update of updates) this.#update(update, touched)
    this.#meanings(touched)
    const steps = this.#steps(touched, true)
    return this.#regroup.isHalfDone ? [...steps, ...this.#steps(nothingTouched(), false)] : steps
  }

  /** `inHalves`: there may be more to be done. */
  #steps(touched: DirtyGroups, inHalves: boolean): readonly PolicyStep[] {
    const { old, moves } = this.#regroup.change(touched, inHalves)
    for (const addr of moves.ends.keys()) touched.addrs.add(addr)
    const turn = this.#turn(touched, moves)
    const plan = turn.plan()
    const learn = this.#sets.takeNewRows(turn.left)
    const move = this.#shown.move(plan.first)
    const join = this.#shown.flip(turn.newcomers, (addr) => this.#endAt(addr, plan))
    const flip = this.#flip(touched, plan)
    // before their sets go blind
    const left = this.#shown.takeGoneEnds()
    const epoch = this.#shown.takeEpoch()
    // what the old sets asked was asked up to here: they had to tell addresses apart until the last endpoint was
    // flipped
    const forget: PolicyRow[] = old.flatMap((set) => this.#sets.release(set))
    const later = targetsOf(this.#addresses.settle())
    const relearn = this.#sets.takeNewRows()
    const settle = this.#shown.move({
      ends: new Map([...plan.rest.ends, ...later.ends]),
      nets: new Map([...plan.rest.nets, ...later.nets]),
    })
    const back = plan.twins.size === 0 ? [] : this.#flip(touched, undefined)
    for (const twin of plan.twins.values()) for (const row of this.#sets.release(twin)) forget.push(row)
    this.#shown.takeEpoch()
    for (const identity of this.#addresses.identities.sweep()) for (const row of this.#sets.forget(identity)) forget.push(row)
    const steps: readonly PolicyStep[] = [
      { kind: 'learn', rows: learn },
      { kind: 'move', rows: move },
      { kind: 'flip', rows: join },
      { kind: 'flip', rows: flip },
      { kind: 'forget', rows: left },
      ...(epoch === 'same' ? [] : [{ kind: 'epoch' as const, epoch }]),
      { kind: 'learn', rows: relearn },
      { kind: 'move', rows: settle },
      { kind: 'forget', rows: this.#shown.takeGoneNets() },
      { kind: 'flip', rows: back },
      ...(plan.isBridge ? [{ kind: 'epoch' as const, epoch: 'next' as const }] : []),
      { kind: 'forget', rows: forget },
    ]
    return steps.filter((step) => step.kind === 'epoch' || step.rows.length > 0)
  }

  /** What a rule's number, as programs record it, stands for. */
  ruleName(number: number): string | undefined {
    return this.#sets.numbers.nameOf(number)
  }

  /** by number */
  get ruleNames(): ReadonlyMap<number, string> {
    return this.#sets.numbers.names
  }

  get cuts(): readonly TruncatedRuleLists[] {
    return this.#regroup.cuts
  }

  get noRoom(): readonly QuotaExceeded[] {
    return this.#regroup.noRoom
  }

  get size(): PolicySize {
    const { size, identities } = this.#addresses
    const groups = [...this.#population.groups.values()]
    return {
      addresses: size,
      identities: identities.size,
      sets: [...this.#sets.all].length,
      groups: groups.length,
      endpoints: groups.reduce((sum, { sets, ends }) => sum + (sets.size > 0 ? ends.size : 0), 0),
      rules: this.#sets.numbers.names.size,
      cutLines: this.#regroup.cutLines,
    }
  }

  #update(update: PolicyUpdate, touched: DirtyGroups): void {
    if (update.kind === 'policy' || update.kind === 'tier' || update.kind === 'profile') this.#lines.forget()
    switch (update.kind) {
      case 'policy':
        return this.#setPolicy(update.key, update.value, touched)
      case 'tier':
        this.#rules.setTier(update.key, update.value)
        for (const group of this.#population.groups.values()) touched.groups.add(group)
        return
      case 'profile':
        this.#rules.setProfile(update.key, update.value)
        for (const group of this.#population.groups.values()) if (group.profiles.includes(update.key)) touched.groups.add(group)
        return
      case 'service':
        if (update.value === undefined) this.#rules.services.delete(update.key)
        else this.#rules.services.set(update.key, update.value)
        touched.services.add(update.key)
        return
      case 'set':
        return this.#population.setNets(update.key, update.value)
      case 'endpoint':
        if (update.value?.kind === 'host' || this.#population.hostAt(update.key) !== undefined) touched.hosts.add(update.key)
        for (const addr of this.#population.setEndpoint(update.key, update.value, (group) => this.#newGroup(group, touched)))
          touched.addrs.add(addr)
    }
  }

  #newGroup(of: NewGroup, touched: DirtyGroups): Members {
    const group = { ...of, policies: selecting(this.#rules.policies.values(), of.labels), lines: NO_LINES, sets: NO_SETS }
    touched.groups.add(group)
    return group
  }

  #setPolicy(key: string, policy: Policy | undefined, touched: DirtyGroups): void {
    const before = this.#rules.policies.get(key)
    this.#rules.setPolicy(key, policy)
    const replaced = new Set(
      [before, policy].flatMap((one) => (one?.staged === undefined ? [] : [refText({ ...one, kind: realKind(one.kind) })])),
    )
    for (const group of this.#population.groups.values()) {
      const had = before !== undefined && group.policies.includes(before)
      const has = policy !== undefined && selects(policy.subject, group.labels)
      if (had || has) {
        const others = group.policies.filter((other) => other !== before)
        group.policies = has ? [...others, policy].sort(comparePolicies) : others
      }
      if (had || has || (replaced.size > 0 && group.policies.some((other) => replaced.has(refText(other))))) touched.groups.add(group)
    }
  }

  /** Names of ports and services that mean something else make other rules of the policies that speak of them. */
  #meanings(touched: DirtyGroups): void {
    if (touched.services.size > 0)
      for (const live of [...this.#addresses.identities.atoms]) {
        const { question } = live.atom
        if (question.kind === 'services' && question.services.some((service) => touched.services.has(service)))
          this.#addresses.servicesChanged(live)
      }
    const changed = this.#rules.meansOther(this.#addresses.things.takeTouchedNames(), touched.services)
    if (changed.size === 0) return
    this.#lines.forget()
    for (const group of this.#population.groups.values())
      if (group.policies.some((policy) => changed.has(refText(policy))) || group.profiles.some((name) => changed.has(`Profile/${name}`)))
        touched.groups.add(group)
  }

  /** Which of those get other rulesets. */
  #turn(touched: DirtyGroups, moves: AddressChanges): Transition {
    const turn = new Transition({ sets: this.#sets, identities: this.#addresses.identities, moves })
    for (const addr of touched.addrs) {
      const after = this.#endAt(addr)
      const before = this.#shown.endAt(addr)
      if (after !== undefined) turn.end(addr, before === undefined ? undefined : slotsOfEnd(before), slotsOfEnd(after))
    }
    for (const key of this.#shown.hosts) touched.hosts.add(key)
    for (const key of touched.hosts) turn.host(slotsOfHost(this.#shown.hostAt(key)), slotsOfHost(this.#hostAt(key)))
    return turn
  }

  /** `plan`: not to the end yet. */
  #flip({ addrs, hosts }: DirtyGroups, plan: Plan | undefined): readonly PolicyRowOf<'ends' | 'hosts'>[] {
    return [
      ...this.#shown.flip(addrs, (addr) => this.#endAt(addr, plan)),
      ...this.#shown.flipHosts(hosts, (key) => this.#hostAt(key, plan)),
    ]
  }

  #endAt(addr: Addr, plan?: Plan): EndValue | undefined {
    if (!this.#addresses.has(addr)) return undefined
    const sets = this.#population.groupAt(addr)?.sets ?? NO_SETS
    const idOf = (name: string): SetId => idIn(sets, name, plan)
    return {
      identity: (plan?.between.get(addr) ?? this.#addresses.identityOf(addr)).id,
      ingress: idOf('ingress'),
      egress: idOf('egress'),
      stagedIngress: idOf(stagedName('ingress')),
      stagedEgress: idOf(stagedName('egress')),
    }
  }

  #hostAt(key: string, plan?: Plan): HostValue | undefined {
    const host = this.#population.hostAt(key)
    if (host === undefined) return undefined
    const { value, group } = host
    return {
      interfaceName: value.interfaceName,
      addrs: value.addrs,
      sets: recordOf(HOST_SLOTS, (name) => idIn(group.sets, name, plan)),
      staged: recordOf(HOST_SLOTS, (name) => idIn(group.sets, stagedName(name), plan)),
    }
  }

  #servicesAddrs({ question }: Predicate): readonly Addr[] {
    if (question.kind !== 'services') return []
    const { port } = question
    const ends = question.services.flatMap((service) => this.#rules.services.get(service)?.ends ?? [])
    return ends
      .filter(({ ports }) => port === undefined || ports.some((own) => own.protocol === port.protocol && own.port === port.port))
      .map(({ addr }) => addr)
  }
}

function nothingTouched(): DirtyGroups {
  return { groups: new Set(), addrs: new Set(), services: new Set(), hosts: new Set() }
}

function idIn(sets: GroupSets, name: string, plan: Plan | undefined): SetId {
  const set = sets.get(name)
  return set === undefined ? NO_SET : (plan?.twins.get(set) ?? set).compiled.id
}

function slotsOfEnd({ ingress, egress, stagedIngress, stagedEgress }: EndValue): readonly SetId[] {
  return [ingress, egress, stagedIngress, stagedEgress]
}

function slotsOfHost(value: HostValue | undefined): readonly SetId[] {
  return HOST_SLOTS.flatMap((slot) => (value === undefined ? [NO_SET, NO_SET] : [value.sets[slot], value.staged[slot]]))
}
