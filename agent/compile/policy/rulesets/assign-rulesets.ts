// SPDX-License-Identifier: Apache-2.0
/** Which sets groups of endpoints have, and which of them there is no room for. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { refText } from '#lib/model/ref.ts'
import { joined } from '../identities/address-changes.ts'
import type { AddressChanges } from '../identities/address-changes.ts'
import type { Addresses } from '../identities/addresses.ts'
import { heaviestOwner } from './heaviest-owner.ts'
import { largestSets } from './largest-sets.ts'
import { Crowding, type RowsNow } from './crowding.ts'
import { countIdentityRows } from './identity-rows.ts'
import { CLOSED, isOverfullLine } from '../rules/rule-list.ts'
import type { GroupRuleLists } from '../rules/group-rule-lists.ts'
import type { LiveRuleset, LiveRulesets } from './rulesets.ts'
import { NO_LINES, NO_SETS } from './endpoint-groups.ts'
import type { GroupSets, Members, EndpointGroups } from './endpoint-groups.ts'
import { CLUSTER } from './policy-quota.ts'
import type { PolicyQuota, QuotaTable } from './policy-quota.ts'
import type { TruncatedRuleLists, QuotaExceeded } from '../policy-size.ts'

/** What updates have touched. */
export interface DirtyGroups {
  readonly groups: Set<Members>
  readonly addrs: Set<Addr>
  readonly services: Set<string>
  /** keys of endpoints that may be host endpoints */
  readonly hosts: Set<string>
}

export interface RulesetAssignmentOptions {
  readonly addresses: Addresses
  readonly population: EndpointGroups
  readonly lines: GroupRuleLists
  readonly sets: LiveRulesets
  readonly room: PolicyQuota
}

export interface AssignedRulesets {
  /** sets that groups had: they are to be released */
  readonly old: readonly LiveRuleset[]
  readonly moves: AddressChanges
}

export class RulesetAssignment {
  readonly #of: RulesetAssignmentOptions
  /** groups without lines of their own, and the namespace that has too many rules for that */
  readonly #unmade = new Map<Members, string>()
  /** names of lines by group */
  readonly #cuts = new Map<Members, readonly string[]>()
  /** namespaces whose lines are closed, and the table that has no room for them */
  #closed: ReadonlyMap<string, QuotaTable> = new Map()
  /** those of them whose predicates make too many rows, with what they ask, which depends on what all owners ask */
  #crowded: ReadonlyMap<string, string> = new Map()
  readonly #crowding = new Crowding()
  /** namespaces that ask too much, or whose network sets are too large, with what they have: it is looked at again when
   * it is something else */
  readonly #heavy = new Map<string, Heavy>()
  /** namespaces whose lines are closed until the next change */
  #postponed: ReadonlySet<string> = new Set()

  constructor(of: RulesetAssignmentOptions) {
    this.#of = of
  }

  /** There was no room for old sets beside new ones, or there may be room for those that are closed: the rest of it is
   * another change. */
  get isHalfDone(): boolean {
    return this.#postponed.size > 0 || this.#mayOpen
  }

  get #mayOpen(): boolean {
    return this.#crowded.size > 0 && this.#crowding.mayBeOver(this.#rowsNow())
  }

  /** New lines of the groups; addresses are settled. `inHalves`: if need be some of it is left for the next time. */
  *change(touched: DirtyGroups, inHalves: boolean): Sliced<AssignedRulesets> {
    const { addresses, population } = this.#of
    for (const group of population.takeEmptied()) touched.groups.add(group)
    for (const group of this.#groupsOf(this.#postponed)) touched.groups.add(group)
    this.#crowding.gone += population.takeDeparted()
    yield* this.#newLines(touched.groups)
    const closed = new Map(yield* this.#of.room.closed())
    // the rows that left no room for these may be gone
    if (this.#mayOpen || [...this.#crowded].some(([owner, has]) => this.#hasNow(owner) !== has)) this.#crowded = new Map()
    for (const owner of this.#crowded.keys()) closed.set(owner, 'bits')
    for (const [owner, { has, table }] of this.#heavy)
      if (this.#hasNow(owner) === has) closed.set(owner, table)
      else this.#heavy.delete(owner)
    yield* addresses.leaveOut(this.#withLargeSets())
    const turned = [...this.#closed.keys(), ...closed.keys()].filter((owner) => closed.has(owner) !== this.#closed.has(owner))
    for (const group of this.#groupsOf(new Set(turned))) touched.groups.add(group)
    const before = new Map<Members, GroupSets>()
    for (const group of touched.groups) yield* this.#give(group, closed, before)
    yield* this.#lighten(closed, before)
    let moves = yield* addresses.settle()
    const crowded = yield* this.#crowd(closed, before)
    this.#crowded = new Map([...this.#crowded, ...crowded])
    this.#closed = closed
    if (crowded.size > 0) {
      moves = yield* this.#settleAgain(moves)
      this.#crowding.begin(this.#rowsNow())
    }
    const old = [...before.values()].flatMap((sets) => [...sets.values()])
    this.#postponed = inHalves && (yield* this.#of.sets.bitsWith(old)) > this.#of.room.size('bits') ? this.#changing(before) : new Set()
    for (const group of [...before.keys()])
      if (isOf(group.lines.values(), this.#postponed)) yield* this.#give(group, this.#postponed, before)
    if (this.#postponed.size > 0) moves = yield* this.#settleAgain(moves)
    for (const [group, had] of before) this.#changed(group, had, touched)
    return { old: [...before.values()].flatMap((sets) => [...sets.values()]), moves }
  }

  *#settleAgain(before: AddressChanges): Sliced<AddressChanges> {
    const moves = joined(before, yield* this.#of.addresses.settle())
    yield* this.#of.addresses.identities.sweepMade()
    return moves
  }

  get cuts(): readonly TruncatedRuleLists[] {
    return [...this.#cuts].map(([{ ends }, lines]) => ({ endpoints: [...ends].sort(), lines }))
  }

  get truncatedRuleLists(): number {
    return [...this.#cuts.values()].reduce((sum, lines) => sum + lines.length, 0)
  }

  get noRoom(): readonly QuotaExceeded[] {
    const policies = new Map<string, Set<string>>()
    for (const group of this.#groupsOf(new Set(this.#closed.keys())))
      for (const policy of group.policies) {
        if (!this.#closed.has(policy.namespace)) continue
        const refs = policies.get(policy.namespace) ?? new Set()
        policies.set(policy.namespace, refs.add(refText(policy)))
      }
    return [...this.#closed].map(([namespace, table]) => ({
      namespace,
      table,
      sets: this.#withLargeSets().has(namespace),
      most: this.#of.room.share(table)[0],
      policies: [...(policies.get(namespace) ?? [])].sort(),
    }))
  }

  #groupsOf(owners: ReadonlySet<string>): readonly Members[] {
    if (owners.size === 0) return []
    return [...this.#of.population.groups.values()].filter(({ lines }) => isOf(lines.values(), owners))
  }

  *#newLines(groups: Set<Members>): Sliced<void> {
    const { lines, population, room } = this.#of
    lines.trim(population.groups.size)
    for (const group of groups)
      for (const line of group.lines.values()) {
        room.drop(line)
        yield
      }
    const isOverfull = (namespace: string): boolean => namespace !== CLUSTER && room.rowsOf(namespace, 'rules') > room.most('rules')
    // a Set's iteration goes on to what is added meanwhile
    for (const group of groups) {
      this.#unmade.delete(group)
      group.lines = group.ends.size === 0 ? NO_LINES : yield* lines.of(group, isOverfull)
      if (group.ends.size === 0) population.groups.delete(group.key)
      for (const line of group.lines.values()) {
        yield* room.take(line)
        if (isOverfullLine(line)) this.#unmade.set(group, line.owner ?? CLUSTER)
      }
      for (const [other, namespace] of this.#unmade) {
        if (groups.has(other) || isOverfull(namespace)) continue
        for (const line of other.lines.values()) room.drop(line)
        groups.add(other)
      }
    }
  }

  /** The sets of its lines. `before`: what groups had, of which nothing is let go of yet. */
  *#give(group: Members, closed: { has(owner: string): boolean }, before: Map<Members, GroupSets>): Sliced<void> {
    const { sets } = this.#of
    const had = group.sets
    const isClosed = (owner: string | undefined): boolean => owner !== undefined && closed.has(owner)
    const given = new Map<string, LiveRuleset>()
    for (const [name, line] of group.lines) given.set(name, yield* sets.take(isClosed(line.owner) ? CLOSED : line))
    group.sets = given.size === 0 ? NO_SETS : given
    for (const set of had.values()) yield* sets.leave(set)
    if (!before.has(group)) before.set(group, had)
    // nothing has been said of these yet
    else for (const set of had.values()) yield* sets.release(set)
  }

  /** Closes namespaces whose network sets would have too many rows, and those whose predicates would be true of too
   * many prefixes and endpoints, before anything is made of them. */
  *#lighten(closed: Map<string, QuotaTable>, before: Map<Members, GroupSets>): Sliced<void> {
    const { addresses, room } = this.#of
    for (;;) {
      const largest = largestSets(addresses, room, this.#withLargeSets())
      const open = room.namespaces.filter((owner) => !closed.has(owner))
      const worst = largest ?? (yield* heaviestOwner(addresses, open))
      if (worst === undefined) return
      const table = largest === undefined ? 'bits' : 'nets'
      this.#heavy.set(worst, { has: this.#hasNow(worst), table })
      closed.set(worst, table)
      yield* addresses.leaveOut(this.#withLargeSets())
      const groups = this.#groupsOf(new Set([worst]))
      // what the others ask so far is asked until the end of the change: then it shows whether this was enough
      const isKnown = groups.every((group) => before.has(group))
      for (const group of groups) yield* this.#give(group, closed, before)
      if (!isKnown) return
    }
  }

  /** Another text for other rules, and for other network sets. */
  #hasNow(owner: string): string {
    const lines = this.#groupsOf(new Set([owner])).flatMap((group) => [...group.lines.values()])
    const prefixes = this.#of.addresses.setPrefixes.get(owner)?.all ?? 0
    return [...new Set(lines.map(({ hash }) => hash)), `${prefixes}`].sort(compareText).join()
  }

  #withLargeSets(): ReadonlySet<string> {
    return new Set([...this.#heavy].flatMap(([owner, { table }]) => (table === 'nets' ? [owner] : [])))
  }

  /** Closes namespaces until identities leave others room. */
  *#crowd(closed: Map<string, QuotaTable>, before: Map<Members, GroupSets>): Sliced<ReadonlyMap<string, string>> {
    const { addresses, room } = this.#of
    const crowded = new Map<string, string>()
    const [half, least] = room.share('bits')
    if (room.sum('bits') + addresses.identities.rows <= half) return crowded
    const own = room.rowsOf(CLUSTER, 'bits')
    for (;;) {
      const open = room.namespaces.filter((owner) => !closed.has(owner))
      const fixed = open.reduce((sum, owner) => sum + room.rowsOf(owner, 'bits'), own)
      const { rows, cluster, saved, mostOfOne } = yield* countIdentityRows(addresses.identities.all)
      const over = fixed + rows - Math.max(half, own + cluster + least)
      if (over <= 0) return crowded
      const savedBy = (owner: string): number => room.rowsOf(owner, 'bits') + (saved.get(owner) ?? 0)
      // of equal ones the first by name
      const [worst] = open.filter((owner) => savedBy(owner) > 0).sort((a, b) => savedBy(b) - savedBy(a))
      if (worst === undefined) return crowded
      crowded.set(worst, this.#hasNow(worst))
      this.#crowding.note(over, mostOfOne)
      closed.set(worst, 'bits')
      for (const group of this.#groupsOf(new Set([worst]))) yield* this.#give(group, closed, before)
    }
  }

  #rowsNow(): RowsNow {
    const { addresses, room } = this.#of
    return { identities: addresses.identities.size, rows: addresses.identities.rows + room.sum('bits') }
  }

  /** Namespaces whose endpoints are to have other sets. */
  #changing(before: ReadonlyMap<Members, GroupSets>): ReadonlySet<string> {
    const owners = new Set<string>()
    for (const [group, had] of before)
      if (!isSameSets(had, group.sets)) for (const { line } of group.sets.values()) if (line.owner !== undefined) owners.add(line.owner)
    return owners
  }

  #changed(group: Members, had: GroupSets, touched: DirtyGroups): void {
    const cut = [...group.sets].flatMap(([name, { line }]) => (line.isCut ? [name] : []))
    if (cut.length === 0) this.#cuts.delete(group)
    else this.#cuts.set(group, cut)
    if (isSameSets(had, group.sets)) return
    for (const addr of this.#of.population.addrsOf(group)) touched.addrs.add(addr)
    if (group.kind === 'host') for (const key of group.ends) touched.hosts.add(key)
  }
}

interface Heavy {
  /** a text of its rules and sets */
  readonly has: string
  readonly table: QuotaTable
}

function isOf(lines: Iterable<{ readonly owner: string | undefined }>, owners: ReadonlySet<string>): boolean {
  for (const { owner } of lines) if (owner !== undefined && owners.has(owner)) return true
  return false
}

function isSameSets(a: GroupSets, b: GroupSets): boolean {
  return a.size === b.size && [...a].every(([name, set]) => b.get(name) === set)
}
