// SPDX-License-Identifier: Apache-2.0
/** Changes of policies and of what they select → changes of the tables, in an order in which no packet is judged by
 * half of either. Layer: agent/compile (pure).
 *
 * What the tables hold depends on what there is, not on how it came to be; the work of a change is in proportion to
 * what it selects. */
import { atOnce, inBatches, type Sliced } from '#lib/base/async/slices.ts'
import type { Addr } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import { comparePolicies } from '#lib/model/policy-order.ts'
import { realKind } from '#lib/model/policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { matcherOf } from '#lib/model/selector/matcher.ts'
import { Addresses } from './identities/addresses.ts'
import type { AddressChanges, IdentityMove } from './identities/address-changes.ts'
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
import { LiveView } from './transition/live-view.ts'
import { planTransition } from './transition/plan.ts'
import type { Change, Plan, Targets } from './transition/plan.ts'
import { endSlots, HOST_SLOTS, hostSlots } from './transition/slots.ts'
import { transitionSteps } from './transition/steps.ts'
import { WrittenRows, targetsOf } from './transition/written-rows.ts'
import type { TruncatedRuleLists, QuotaExceeded, PolicySize } from './policy-size.ts'
import { NO_SET } from './tables.ts'
import type { EndpointRow, EndValue, HostValue, PolicyRow, PolicyStep, SetId } from './tables.ts'
import { portNumber, type PolicyUpdate } from './policy-update.ts'

const NO_SLOTS: readonly SetId[] = HOST_SLOTS.flatMap(() => [NO_SET, NO_SET])

export class PolicyCompiler {
  readonly #addresses = new Addresses((atom) => this.#servicesAddrs(atom))
  readonly #rules = new Rulebook((name, isFound) => this.#addresses.things.portsNamed(name, isFound))
  readonly #population = new EndpointGroups(this.#addresses)
  readonly #sets = new LiveRulesets(this.#addresses)
  readonly #written = new WrittenRows()
  /** rows that there is place for */
  readonly #mostNets: number
  readonly #lines: GroupRuleLists
  readonly #regroup: RulesetAssignment

  /** `blocks` of a line are looked through by programs; `sizes`: of their maps. */
  constructor(blocks = MOST_BLOCKS, sizes: Rows = TABLE_SIZES) {
    this.#mostNets = sizes.nets
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
    return atOnce(this.slicedChange(updates))
  }

  /** The same in slices. What the compiler says of itself meanwhile is half of it. */
  *slicedChange(updates: Iterable<PolicyUpdate>): Sliced<readonly PolicyStep[]> {
    const touched = nothingTouched()
    for (const update of updates) {
      yield* this.#update(update, touched)
      yield
    }
    yield* this.#meanings(touched)
    yield
    const steps = yield* this.#steps(touched, true)
    return this.#regroup.isHalfDone ? [...steps, ...(yield* this.#steps(nothingTouched(), false))] : steps
  }

  /** `inHalves`: there may be more to be done. */
  *#steps(touched: DirtyGroups, inHalves: boolean): Sliced<readonly PolicyStep[]> {
    const { old, moves } = yield* this.#regroup.change(touched, inHalves)
    for (const addr of moves.ends.keys()) touched.addrs.add(addr)
    for (const key of this.#written.hosts) touched.hosts.add(key)
    const [addresses, sets, written] = [this.#addresses, this.#sets, this.#written]
    const plan = yield* planTransition(this.#changeOf(touched, moves), new LiveView(sets, addresses.identities))
    const unused: PolicyRow[] = []
    let later: Targets | undefined
    return yield* transitionSteps({
      rulesets: () => sets.takeNewRows(plan.left),
      identities: () => written.reassign(plan.first),
      newcomers: () => written.switchEnds(plan.newcomers, (addr) => this.#endAt(addr, plan)),
      endpoints: () => this.#switch(touched, plan),
      departed: () => written.takeGoneEnds(),
      switched: () => written.takeEpoch(),
      *coarser() {
        // old rulesets had to tell addresses apart until the last endpoint had another one
        for (const set of old) for (const row of yield* sets.release(set)) unused.push(row)
        later = targetsOf(yield* addresses.settle())
        return yield* sets.takeNewRows()
      },
      settled: () => written.reassign(bothTargets(plan.rest, later)),
      prefixes: () => written.takeGoneNets(),
      untwinned: () => (plan.twins.length === 0 ? [] : this.#switch(touched, undefined)),
      bridged: () => {
        written.takeEpoch()
        return plan.isBridge ? 'next' : 'same'
      },
      *unused() {
        for (const twin of plan.twins) for (const row of yield* sets.release(sets.at(twin))) unused.push(row)
        for (const identity of yield* addresses.identities.sweep()) {
          for (const row of sets.forget(identity)) unused.push(row)
          yield
        }
        return unused
      },
    })
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
      rulesets: [...this.#sets.all].length,
      groups: groups.length,
      endpoints: groups.reduce((sum, { sets, ends }) => sum + (sets.size > 0 ? ends.size : 0), 0),
      rules: this.#sets.numbers.names.size,
      truncatedRuleLists: this.#regroup.truncatedRuleLists,
    }
  }

  *#update(update: PolicyUpdate, touched: DirtyGroups): Sliced<void> {
    if (update.kind === 'policy' || update.kind === 'tier' || update.kind === 'profile') this.#lines.forget()
    switch (update.kind) {
      case 'policy':
        return yield* this.#setPolicy(update.key, update.value, touched)
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
        return yield* this.#population.setNets(update.key, update.value)
      case 'endpoint':
        if (update.value?.kind === 'host' || this.#population.hostAt(update.key) !== undefined) touched.hosts.add(update.key)
        for (const addr of yield* this.#population.setEndpoint(update.key, update.value, (group) => this.#newGroup(group, touched)))
          touched.addrs.add(addr)
    }
  }

  *#newGroup(of: NewGroup, touched: DirtyGroups): Sliced<Members> {
    const group = { ...of, policies: yield* selecting(this.#rules.policies.values(), of.labels), lines: NO_LINES, sets: NO_SETS }
    touched.groups.add(group)
    return group
  }

  *#setPolicy(key: string, policy: Policy | undefined, touched: DirtyGroups): Sliced<void> {
    const before = this.#rules.policies.get(key)
    this.#rules.setPolicy(key, policy)
    const replaced = new Set(
      [before, policy].flatMap((one) => (one?.staged === undefined ? [] : [refText({ ...one, kind: realKind(one.kind) })])),
    )
    const isSubject = policy && matcherOf(policy.subject)
    yield* inBatches(this.#population.groups.values(), (group) => {
      const had = before !== undefined && group.policies.includes(before)
      const has = isSubject?.(group.labels) === true
      if (had || has) {
        const others = group.policies.filter((other) => other !== before)
        group.policies = has && policy !== undefined ? [...others, policy].sort(comparePolicies) : others
      }
      if (had || has || (replaced.size > 0 && group.policies.some((other) => replaced.has(refText(other))))) touched.groups.add(group)
    })
  }

  /** Names of ports and services that mean something else make other rules of the policies that speak of them. */
  *#meanings(touched: DirtyGroups): Sliced<void> {
    if (touched.services.size > 0)
      for (const live of [...this.#addresses.identities.atoms]) {
        const { question } = live.atom
        if (question.kind === 'services' && question.services.some((service) => touched.services.has(service)))
          yield* this.#addresses.servicesChanged(live)
      }
    const changed = this.#rules.meansOther(this.#addresses.things.takeTouchedNames(), touched.services)
    if (changed.size === 0) return
    this.#lines.forget()
    for (const group of this.#population.groups.values())
      if (group.policies.some((policy) => changed.has(refText(policy))) || group.profiles.some((name) => changed.has(`Profile/${name}`)))
        touched.groups.add(group)
  }

  /** What endpoints and host endpoints had and are to have. */
  #changeOf({ addrs, hosts }: DirtyGroups, moves: AddressChanges): Change<IdentityMove> {
    const ends = [...addrs].flatMap((addr) => {
      const [before, after] = [this.#written.endAt(addr), this.#endAt(addr)]
      return after === undefined ? [] : [{ addr, before: before && endSlots(before), after: endSlots(after) }]
    })
    const slotsOf = (host: HostValue | undefined): readonly SetId[] => (host === undefined ? NO_SLOTS : hostSlots(host))
    const all = [...hosts].map((endpoint) => ({
      endpoint,
      before: slotsOf(this.#written.hostAt(endpoint)),
      after: slotsOf(this.#hostAt(endpoint)),
    }))
    const { isEmpty, netCount } = this.#written
    const written = { isEmpty, freeNets: this.#mostNets - netCount, hasNet: (key: string) => this.#written.hasNet(key) }
    return { moves, ends, hosts: all, written }
  }

  /** `plan`: not to the end yet. */
  #switch({ addrs, hosts }: DirtyGroups, plan: Plan | undefined): readonly EndpointRow[] {
    return [
      ...this.#written.switchEnds(addrs, (addr) => this.#endAt(addr, plan)),
      ...this.#written.switchHosts(hosts, (key) => this.#hostAt(key, plan)),
    ]
  }

  #endAt(addr: Addr, plan?: Plan): EndValue | undefined {
    if (!this.#addresses.has(addr)) return undefined
    const sets = this.#population.groupAt(addr)?.sets ?? NO_SETS
    const idOf = (name: string): SetId => idIn(sets, { name, endpoint: addr, plan })
    return {
      identity: plan?.between.get(addr) ?? this.#addresses.identityOf(addr).id,
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
      sets: recordOf(HOST_SLOTS, (name) => idIn(group.sets, { name, endpoint: key, plan })),
      staged: recordOf(HOST_SLOTS, (name) => idIn(group.sets, { name: stagedName(name), endpoint: key, plan })),
    }
  }

  #servicesAddrs({ question }: Predicate): readonly Addr[] {
    if (question.kind !== 'services') return []
    const { port } = question
    const slices = question.services.flatMap((service) => this.#rules.services.get(service)?.slices ?? [])
    return slices.filter(({ ports }) => port === undefined || ports.has(portNumber(port))).flatMap(({ addrs }) => addrs)
  }
}

function nothingTouched(): DirtyGroups {
  return { groups: new Set(), addrs: new Set(), services: new Set(), hosts: new Set() }
}

interface Slot {
  readonly name: string
  readonly endpoint: string
  /** undefined: as it is to be at the end */
  readonly plan: Plan | undefined
}

function idIn(sets: GroupSets, { name, endpoint, plan }: Slot): SetId {
  const id = sets.get(name)?.compiled.id ?? NO_SET
  return plan === undefined ? id : plan.setFor(endpoint, id)
}

/** Of rows that are in both, the later. */
function bothTargets(first: Targets, later: Targets = first): Targets {
  return { ends: new Map([...first.ends, ...later.ends]), nets: new Map([...first.nets, ...later.nets]) }
}
