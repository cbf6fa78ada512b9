// SPDX-License-Identifier: Apache-2.0
/** Changes of policy and of whom it speaks → changes of the tables, in an order in which no packet is judged by half of either.
 * Layer: agent/compile (pure).
 *
 * What the tables hold depends on what there is, not on how it came to be; the work of a change is in proportion to what it selects. */
import type { Addr } from '#lib/base/ip.ts'
import { comparePolicies } from '#lib/model/policy-order.ts'
import { realKind } from '#lib/model/policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector.ts'
import { Addresses } from './addresses.ts'
import type { Atom } from './atoms.ts'
import type { Direction } from './expand.ts'
import { groupLine, selecting } from './groups.ts'
import type { Line } from './line.ts'
import { LiveSets, rowsOfSet } from './live-sets.ts'
import type { LiveSet } from './live-sets.ts'
import { NO_SETS, Population } from './population.ts'
import type { GroupSets, Members } from './population.ts'
import { Rulebook } from './rulebook.ts'
import { Shown } from './shown.ts'
import { NO_SET } from './tables.ts'
import type { EndValue, PolicyRow, PolicyStep } from './tables.ts'
import { portsText } from './things.ts'
import type { PolicyUpdate } from './world.ts'

/** Two directions, two views, and as many again of groups that are gone. */
const LINES_A_GROUP = 8
const LINES_SPARE = 100

/** What updates have touched. */
interface Touched {
  readonly groups: Set<Members>
  readonly addrs: Set<Addr>
  /** of endpoints that are themselves others now */
  readonly joined: Set<Addr>
  readonly services: Set<string>
}

export class PolicyCompiler {
  readonly #addresses = new Addresses((atom) => this.#servicesAddrs(atom))
  readonly #rules = new Rulebook((name) => this.#addresses.things.portsNamed(name))
  readonly #population = new Population(this.#addresses)
  readonly #sets = new LiveSets(this.#addresses)
  readonly #shown = new Shown()
  /** of groups that the same policies select, as long as no rule changes */
  readonly #lines = new Map<string, Line | undefined>()

  /** Steps to be taken one after the other, none of them empty. The first time it is everything. */
  change(updates: Iterable<PolicyUpdate>): readonly PolicyStep[] {
    const touched: Touched = { groups: new Set(), addrs: new Set(), joined: new Set(), services: new Set() }
    for (const update of updates) this.#update(update, touched)
    this.#meanings(touched)
    const old = this.#regroup(touched)
    const moves = this.#addresses.settle()
    for (const addr of moves.ends.keys()) touched.addrs.add(addr)
    const learn = this.#sets.takeNewRows()
    const { joined } = touched
    const move = this.#shown.move(moves, (addr) => joined.has(addr) && this.#population.groupAt(addr) !== undefined)
    const wanted = (addr: Addr): EndValue | undefined => this.#endAt(addr)
    const join = this.#shown.flip(joined, wanted)
    const flip = this.#shown.flip(touched.addrs, wanted)
    // before their sets go blind
    const left = this.#shown.takeGoneEnds()
    const epoch = this.#shown.takeEpoch()
    // what the old sets asked was asked up to here: they had to tell addresses apart until the last endpoint was flipped
    const gone = old.flatMap((set) => this.#sets.release(set) ?? [])
    const later = this.#addresses.settle()
    const relearn = this.#sets.takeNewRows()
    const settle = this.#shown.move(later, () => false)
    this.#shown.takeEpoch()
    const forget: PolicyRow[] = [...this.#shown.takeGoneNets(), ...gone.flatMap(rowsOfSet)]
    for (const identity of this.#addresses.identities.sweep()) forget.push(...this.#sets.forget(identity))
    const steps: readonly PolicyStep[] = [
      { kind: 'learn', rows: learn },
      { kind: 'move', rows: move },
      { kind: 'flip', rows: join },
      { kind: 'flip', rows: flip },
      { kind: 'forget', rows: left },
      ...(epoch === 'same' ? [] : [{ kind: 'epoch' as const, epoch }]),
      { kind: 'learn', rows: relearn },
      { kind: 'move', rows: settle },
      { kind: 'forget', rows: forget },
    ]
    return steps.filter((step) => step.kind === 'epoch' || step.rows.length > 0)
  }

  /** What a rule's number, as programs record it, stands for. */
  ruleName(number: number): string | undefined {
    return this.#sets.numbers.nameOf(number)
  }

  get size(): { readonly addresses: number; readonly identities: number; readonly sets: number; readonly groups: number } {
    const { size, identities } = this.#addresses
    return { addresses: size, identities: identities.size, sets: [...this.#sets.all].length, groups: this.#population.groups.size }
  }

  #update(update: PolicyUpdate, touched: Touched): void {
    if (update.kind === 'policy' || update.kind === 'tier' || update.kind === 'profile') this.#lines.clear()
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
        for (const addr of this.#population.setEndpoint(update.key, update.value, (group) => this.#newGroup(group, touched)))
          touched.joined.add(addr)
    }
  }

  #newGroup(of: Omit<Members, 'policies' | 'sets'>, touched: Touched): Members {
    const group = { ...of, policies: selecting(this.#rules.policies.values(), of.labels), sets: NO_SETS }
    touched.groups.add(group)
    return group
  }

  #setPolicy(key: string, policy: Policy | undefined, touched: Touched): void {
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
  #meanings(touched: Touched): void {
    if (touched.services.size > 0)
      for (const live of [...this.#addresses.identities.atoms]) {
        const { question } = live.atom
        if (question.kind === 'services' && question.services.some((service) => touched.services.has(service)))
          this.#addresses.servicesChanged(live)
      }
    const changed = this.#rules.meansOther(this.#addresses.things.takeChangedNames(), touched.services)
    if (changed.size === 0) return
    this.#lines.clear()
    for (const group of this.#population.groups.values())
      if (group.policies.some((policy) => changed.has(refText(policy))) || group.profiles.some((name) => changed.has(`Profile/${name}`)))
        touched.groups.add(group)
  }

  /** New lines of the groups; returns the sets that they had. */
  #regroup(touched: Touched): readonly LiveSet[] {
    const old: LiveSet[] = []
    for (const group of this.#emptied(touched)) touched.groups.add(group)
    // lines of groups that are gone
    if (this.#lines.size > LINES_A_GROUP * this.#population.groups.size + LINES_SPARE) this.#lines.clear()
    for (const group of touched.groups) {
      const before = group.sets
      group.sets = group.ends.size === 0 ? NO_SETS : this.#setsOf(group)
      if (group.ends.size === 0) this.#population.groups.delete(group.key)
      old.push(...usesOf(before))
      if (!isSameSets(before, group.sets)) for (const addr of this.#population.addrsOf(group)) touched.addrs.add(addr)
    }
    return old
  }

  #emptied({ joined }: Touched): readonly Members[] {
    return joined.size === 0 ? [] : [...this.#population.groups.values()].filter(({ ends }) => ends.size === 0)
  }

  #setsOf(group: Members): GroupSets {
    const isStagedToo = group.policies.some((policy) => policy.staged !== undefined || !this.#rules.isStaged(policy))
    const take = (direction: Direction, staged: boolean): LiveSet | undefined => {
      const line = this.#lineOf(group, direction, staged)
      return line === undefined ? undefined : this.#sets.take(line)
    }
    const [ingress, egress] = [take('ingress', false), take('egress', false)]
    return {
      ingress,
      egress,
      stagedIngress: isStagedToo ? take('ingress', true) : this.#again(ingress),
      stagedEgress: isStagedToo ? take('egress', true) : this.#again(egress),
    }
  }

  #lineOf(group: Members, direction: Direction, staged: boolean): Line | undefined {
    const key = [direction, staged, portsText(group.ports), group.profiles.join(), ...group.policies.map(refText)].join('\n')
    if (this.#lines.has(key)) return this.#lines.get(key)
    const isIn = staged ? (policy: Policy) => this.#rules.isStaged(policy) : (policy: Policy) => policy.staged === undefined
    const line = groupLine({ group, direction, scopes: ['normal', 'forward'], isIn }, this.#rules)
    this.#lines.set(key, line)
    return line
  }

  #again(set: LiveSet | undefined): LiveSet | undefined {
    if (set !== undefined) set.users++
    return set
  }

  #endAt(addr: Addr): EndValue | undefined {
    if (!this.#addresses.has(addr)) return undefined
    const sets = this.#population.groupAt(addr)?.sets ?? NO_SETS
    const id = (set: LiveSet | undefined): string => set?.compiled.id ?? NO_SET
    return {
      identity: this.#addresses.identityOf(addr).id,
      ingress: id(sets.ingress),
      egress: id(sets.egress),
      stagedIngress: id(sets.stagedIngress),
      stagedEgress: id(sets.stagedEgress),
    }
  }

  #servicesAddrs({ question }: Atom): readonly Addr[] {
    if (question.kind !== 'services') return []
    const { port } = question
    const ends = question.services.flatMap((service) => this.#rules.services.get(service)?.ends ?? [])
    return ends
      .filter(({ ports }) => port === undefined || ports.some((own) => own.protocol === port.protocol && own.port === port.port))
      .map(({ addr }) => addr)
  }
}

function usesOf(sets: GroupSets): readonly LiveSet[] {
  return [sets.ingress, sets.egress, sets.stagedIngress, sets.stagedEgress].filter((set) => set !== undefined)
}

function isSameSets(a: GroupSets, b: GroupSets): boolean {
  return a.ingress === b.ingress && a.egress === b.egress && a.stagedIngress === b.stagedIngress && a.stagedEgress === b.stagedEgress
}
