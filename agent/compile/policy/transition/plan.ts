// SPDX-License-Identifier: Apache-2.0
/** A change in which endpoints get other rulesets while addresses get other identities: what stands between, so that
 * every packet is judged by all of the change or by nothing of it. The same for a change of objects and for an agent
 * that starts. Layer: agent/compile (pure).
 *
 * Rulesets that are left do not know new identities as new rulesets do, nor the other way round. So an address of
 * which one that is left would say something else goes through an identity between its two: rulesets that are left
 * say of that what they say of the old one, all others what they say of the new one. A ruleset that one endpoint
 * leaves while another gets it would have to say both: the latter gets a twin of it first.
 *
 * A new endpoint gets its identity together with its rulesets, after prefixes have moved: until then a prefix of its
 * whole address keeps the identity that it had, where the table has place for it. */
import type { Sliced } from '#lib/base/async/slices.ts'
import { addrBits, isV4, prefixKey } from '#lib/base/ip.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { NO_SET } from '../tables.ts'
import type { SetId } from '../tables.ts'

/** An address's old and new identity, by its own row or by that of the prefix around it. */
export interface Move {
  readonly was: { readonly id: number }
  readonly now: { readonly id: number }
  /** it has no row any more */
  readonly isGone: boolean
}

export interface Moves<M extends Move> {
  readonly ends: ReadonlyMap<Addr, M>
  /** by key of the prefix */
  readonly nets: ReadonlyMap<string, M & { readonly cidr: Cidr }>
}

/** What rulesets say of identities, those before and those after. */
export interface RulesetView<M extends Move> {
  /** whether one of them may say something else of the new identity than of the old one */
  tellsApart(rulesets: ReadonlySet<SetId>, move: M): boolean
  /** the same, where the identities are of the endpoint's own address */
  tellsOwnApart(ruleset: SetId, move: M): boolean
  /** an identity for addresses that go from the one to the other */
  between(move: M): number
  /** a ruleset that says what this one says after the change */
  twinOf(ruleset: SetId): SetId
}

/** The rulesets of an endpoint or host endpoint, slot by slot in the same order; `before` undefined: it has no row. */
interface SlotChange {
  readonly before: readonly SetId[] | undefined
  readonly after: readonly SetId[]
}

export interface Change<M extends Move> {
  readonly moves: Moves<M>
  /** of addresses whose rulesets may be others */
  readonly ends: Iterable<SlotChange & { readonly addr: Addr }>
  /** of host endpoints, by ref */
  readonly hosts: Iterable<SlotChange & { readonly endpoint: string }>
  /** rulesets that some endpoint leaves, though not of `ends` or `hosts` */
  readonly leaving?: Iterable<SetId>
  /** before */
  readonly written: {
    /** nothing judges yet */
    readonly isEmpty: boolean
    /** rows of prefixes that there is place for */
    readonly freeNets: number
    /** whether the prefix of this key has a row */
    hasNet(key: string): boolean
  }
}

/** The identities that addresses and prefixes are to have; undefined: they are to have no row. */
export interface Targets {
  readonly ends: ReadonlyMap<Addr, number | undefined>
  readonly nets: ReadonlyMap<string, NetTarget>
}

export interface NetTarget {
  readonly cidr: Cidr
  readonly identity: number | undefined
}

export interface Plan {
  /** before endpoints switch */
  readonly first: Targets
  /** what is left when all have */
  readonly rest: Targets
  /** rulesets that some endpoint leaves */
  readonly left: ReadonlySet<SetId>
  /** endpoints without a row that get one and rulesets with it: without them they would be open */
  readonly newcomers: ReadonlySet<Addr>
  /** identities that addresses have while endpoints switch */
  readonly between: ReadonlyMap<Addr, number>
  /** the ruleset, or its twin until the end; `endpoint`: its address, or the ref of a host endpoint */
  readonly setFor: (endpoint: string, ruleset: SetId) => SetId
  readonly twins: readonly SetId[]
  /** whether some address or prefix goes through an identity between: flows are judged once more at the end */
  readonly isBridge: boolean
}

export function* planTransition<M extends Move>(change: Change<M>, rulesets: RulesetView<M>): Sliced<Plan> {
  const switching = switchingIn(change, rulesets)
  const { left, taken, newcomers } = switching
  const between = new Map<Addr, number>()
  const first = { ends: new Map<Addr, number | undefined>(), nets: new Map<string, NetTarget>() }
  const rest = { ends: new Map<Addr, number | undefined>(), nets: new Map<string, NetTarget>() }
  const betweenOf = betweenFinder(rulesets, left)
  let isBridge = false
  for (const [addr, move] of change.moves.ends) {
    yield
    if (isAlone(addr, switching)) continue
    // no endpoint sends from an address that is gone
    const by = move.isGone ? undefined : betweenOf(move)
    if (by !== undefined) between.set(addr, by)
    if (by !== undefined) rest.ends.set(addr, move.now.id)
    if (!newcomers.has(addr)) first.ends.set(addr, move.isGone ? undefined : (by ?? move.now.id))
  }
  for (const [key, move] of change.moves.nets) {
    yield
    const by = betweenOf(move)
    const { cidr, isGone, now } = move
    isBridge ||= by !== undefined
    first.nets.set(key, { cidr, identity: isGone && !isAny(switching) ? undefined : (by ?? now.id) })
    if (by !== undefined || isGone) rest.nets.set(key, { cidr, identity: isGone ? undefined : now.id })
  }
  for (const { key, cidr, was } of heldBack(change, newcomers)) {
    first.nets.set(key, { cidr, identity: was.id })
    if (!rest.nets.has(key)) rest.nets.set(key, { cidr, identity: change.moves.nets.get(key)?.now.id })
  }
  isBridge ||= between.size > 0
  const both = isBridge ? [...left].filter((set) => taken.has(set)) : []
  const twins = new Map(both.map((set) => [set, rulesets.twinOf(set)]))
  const setFor: Plan['setFor'] = (endpoint, set) => (switching.all.has(endpoint) ? (twins.get(set) ?? set) : set)
  return { first, rest, left, newcomers, between, setFor, twins: [...twins.values()], isBridge }
}

/** Whole addresses of new endpoints within prefixes that move, as many as there is place for. One whose row stays as it
 * is needs nothing. */
function heldBack<M extends Move>(
  { moves, written }: Change<M>,
  newcomers: ReadonlySet<Addr>,
): readonly { readonly key: string; readonly cidr: Cidr; readonly was: M['was'] }[] {
  if (written.isEmpty || newcomers.size === 0 || moves.nets.size === 0) return []
  const moving = new PrefixMap<true>()
  let free = written.freeNets
  for (const [key, { cidr, isGone }] of moves.nets) {
    moving.set(cidr, true)
    if (!isGone && !written.hasNet(key)) free--
  }
  return [...newcomers].flatMap((addr) => {
    const [key, move] = [prefixKey(addr, 128), moves.ends.get(addr)]
    if (move === undefined || moving.find(addr) === undefined) return []
    if (!moves.nets.has(key) && (written.hasNet(key) || free-- <= 0)) return []
    return [{ key, cidr: { addr, bits: addrBits(addr) }, was: move.was }]
  })
}

/** Which endpoints get other rulesets. */
interface Switching {
  /** by address or ref */
  readonly all: Set<string>
  readonly ends: { readonly v4: Set<Addr>; readonly v6: Set<Addr> }
  /** some host endpoint */
  hosts: boolean
  readonly left: Set<SetId>
  readonly taken: Set<SetId>
  readonly newcomers: Set<Addr>
}

function switchingIn<M extends Move>({ moves, ends, hosts, leaving = [] }: Change<M>, rulesets: RulesetView<M>): Switching {
  const found: Switching = {
    ...{ all: new Set(), ends: { v4: new Set(), v6: new Set() }, hosts: false },
    ...{ left: new Set(leaving), taken: new Set(), newcomers: new Set() },
  }
  for (const { addr, before, after } of ends) {
    const move = moves.ends.get(addr)
    if (!compareSlots({ before, after }, found, (set) => move !== undefined && rulesets.tellsOwnApart(set, move))) continue
    found.all.add(addr)
    found.ends[isV4(addr) ? 'v4' : 'v6'].add(addr)
    if (before === undefined) found.newcomers.add(addr)
  }
  // any address may be a host endpoint's own
  const tellsOwn = (set: SetId): boolean => some([moves.ends.values(), moves.nets.values()], (move) => rulesets.tellsOwnApart(set, move))
  for (const { endpoint, ...slots } of hosts) {
    if (!compareSlots(slots, found, tellsOwn)) continue
    found.all.add(endpoint)
    found.hosts = true
    // several of them judge the same packet: they change together
    compareSlots(slots, found, () => true)
  }
  return found
}

/** True when some slot gets another ruleset, or `isOther` of the one that stays. */
function compareSlots({ before = [], after }: SlotChange, { left, taken }: Switching, isOther: (set: SetId) => boolean): boolean {
  let isSwitching = false
  for (const [at, now] of after.entries()) {
    const old = before[at] ?? NO_SET
    if (old === now && (old === NO_SET || !isOther(old))) continue
    if (old !== NO_SET) left.add(old)
    if (now !== NO_SET) taken.add(now)
    isSwitching = true
  }
  return isSwitching
}

function isAny({ ends, hosts }: Switching): boolean {
  return hosts || ends.v4.size + ends.v6.size > 0
}

/** True when no other endpoint changes its rulesets: then the address's identity can be written together with
 * them. */
function isAlone(addr: Addr, { ends, hosts }: Switching): boolean {
  const switching = ends[isV4(addr) ? 'v4' : 'v6']
  return !hosts && switching.size === 1 && switching.has(addr)
}

/** undefined: rulesets that are left say the same of both. */
function betweenFinder<M extends Move>(rulesets: RulesetView<M>, left: ReadonlySet<SetId>): (move: M) => number | undefined {
  const known = new Map<string, number | undefined>()
  return (move) => {
    const key = `${move.was.id} ${move.now.id}`
    if (!known.has(key)) known.set(key, rulesets.tellsApart(left, move) ? rulesets.between(move) : undefined)
    return known.get(key)
  }
}

function some<T>(lists: readonly Iterable<T>[], is: (one: T) => boolean): boolean {
  for (const list of lists) for (const one of list) if (is(one)) return true
  return false
}
