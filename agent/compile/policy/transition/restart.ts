// SPDX-License-Identifier: Apache-2.0
/** From what the kernel has of policy, of which no more than its rows is known, to the whole that is wanted: for an
 * agent that starts, and when a step fails that others wait for. Layer: agent/compile (pure). */
import { atOnce } from '#lib/base/async/slices.ts'
import { depthOf, prefixKey } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import { TABLE_SIZES } from '../rulesets/policy-quota.ts'
import { NO_SET, rowKey } from '../tables.ts'
import type { AddressRow, EndValue, PolicyRow, PolicyRowOf, PolicyStep, SetId, SetRow } from '../tables.ts'
import { planTransition } from './plan.ts'
import type { Move, Moves } from './plan.ts'
import { RowView } from './row-view.ts'
import { endSlots, hostSlots, replaceEndSets, replaceHostSets } from './slots.ts'
import { transitionSteps, type TransitionRows } from './steps.ts'
import { WrittenRows } from './written-rows.ts'

export interface KernelPolicy {
  /** asked for when some address or prefix gets another identity */
  readonly bits: () => readonly PolicyRowOf<'bits'>[]
  readonly nets: readonly PolicyRowOf<'nets'>[]
  readonly ends: ReadonlyMap<Addr, EndValue>
  /** rulesets of all host endpoints, whichever has them */
  readonly hostSets: ReadonlySet<SetId>
}

/** `steps` make the whole where nothing is; these make it of what there is. They name each row of the whole, so that
 * all others can go afterwards. */
export function restartSteps(steps: readonly PolicyStep[], kernel: KernelPolicy): readonly PolicyStep[] {
  const whole = wholeOf(steps)
  if (kernel.nets.length === 0 && !whole.ends.some(({ key }) => kernel.ends.has(key.addr))) return steps
  const moves = movesOf(whole, kernel)
  if (moves.ends.size + moves.nets.size === 0) return steps
  const view = new RowView({ before: kernel.bits(), after: whole.sets, taken: identitiesIn(whole, kernel) })
  const ends = whole.ends.map(({ key: { addr }, value }) => {
    const before = kernel.ends.get(addr)
    return { addr, before: before && endSlots(before), after: endSlots(value) }
  })
  const hosts = whole.hosts.map(({ key, value }) => ({ ...key, before: undefined, after: hostSlots(value) }))
  const written = new WrittenRows(kernel)
  const before = { isEmpty: false, freeNets: TABLE_SIZES.nets - written.netCount, hasNet: (key: string) => written.hasNet(key) }
  const leaving = [...view.leaving, ...kernel.hostSets].filter((set) => set !== NO_SET)
  const plan = atOnce(planTransition({ moves, ends, hosts, leaving, written: before }, view))
  const extra = view.extraRows(plan.left)
  const values = new Map(whole.ends.map(({ key, value }) => [key.addr, value]))
  const setFor = (endpoint: string) => (set: SetId) => plan.setFor(endpoint, set)
  const endAt = (addr: Addr): EndValue | undefined => {
    const value = values.get(addr)
    return value && replaceEndSets({ ...value, identity: plan.between.get(addr) ?? value.identity }, setFor(addr))
  }
  const rows: TransitionRows = {
    *rulesets() {
      yield
      return [...whole.sets, ...extra]
    },
    identities: () => written.reassign(plan.first),
    newcomers: () => written.switchEnds(plan.newcomers, endAt),
    endpoints: () => [
      ...written.switchEnds(values.keys(), endAt),
      ...whole.hosts.map((row) => ({ ...row, value: replaceHostSets(row.value, setFor(row.key.endpoint)) })),
    ],
    // they go with all else that is not named
    departed: () => [],
    switched: () => 'next',
    *coarser() {
      yield
      return []
    },
    settled: () => withRest(written.reassign(plan.rest), whole.nets),
    prefixes: () => written.takeGoneNets(),
    untwinned: () => [...whole.ends, ...whole.hosts],
    bridged: () => (plan.isBridge ? 'next' : 'same'),
    *unused() {
      yield
      return extra
    },
  }
  return atOnce(transitionSteps(rows))
}

interface Whole {
  readonly sets: readonly SetRow[]
  readonly nets: readonly PolicyRowOf<'nets'>[]
  readonly ends: readonly PolicyRowOf<'ends'>[]
  readonly hosts: readonly PolicyRowOf<'hosts'>[]
}

/** These, and of others those that they do not name. */
function withRest(rows: readonly AddressRow[], others: readonly AddressRow[]): readonly AddressRow[] {
  const named = new Set(rows.map(rowKey))
  return [...rows, ...others.filter((row) => !named.has(rowKey(row)))]
}

/** The last word of each row that stays. */
function wholeOf(steps: readonly PolicyStep[]): Whole {
  const whole = new Map<string, PolicyRow>()
  for (const step of steps) {
    if (step.kind === 'epoch') continue
    for (const row of step.rows)
      if (step.kind === 'delete') whole.delete(rowKey(row))
      else whole.set(rowKey(row), row)
  }
  const rows = [...whole.values()]
  return {
    sets: rows.filter((row): row is SetRow => row.table !== 'ends' && row.table !== 'nets' && row.table !== 'hosts'),
    nets: rows.filter((row) => row.table === 'nets'),
    ends: rows.filter((row) => row.table === 'ends'),
    hosts: rows.filter((row) => row.table === 'hosts'),
  }
}

/** Addresses and prefixes that get another identity, or a row of their own, or lose it. */
function movesOf(whole: Whole, kernel: KernelPolicy): Moves<Move> {
  const [before, after] = [lookupOf(kernel.nets), lookupOf(whole.nets)]
  const ends = new Map<Addr, Move>()
  for (const { key, value } of whole.ends) {
    const own = kernel.ends.get(key.addr)?.identity
    const was = own || identityAt(before, key.addr)
    const now = value.identity || identityAt(after, key.addr)
    if (was !== now || own !== value.identity) ends.set(key.addr, { was: { id: was }, now: { id: now }, isGone: false })
  }
  const nets = new Map<string, Move & { readonly cidr: Cidr }>()
  const gone = kernel.nets.filter(({ key }) => after.get(key.cidr) === undefined)
  for (const {
    key: { cidr },
  } of [...whole.nets, ...gone]) {
    const around = (lookup: PrefixMap<number>): Move['was'] => ({ id: identityAt(lookup, cidr.addr, depthOf(cidr)) })
    const [was, now, isNew, isGone] = [around(before), around(after), before.get(cidr) === undefined, after.get(cidr) === undefined]
    if (was.id !== now.id || isNew || isGone) nets.set(prefixKey(cidr.addr, depthOf(cidr)), { cidr, was, now, isGone })
  }
  return { ends, nets }
}

/** 0 where no prefix is around. */
function identityAt(lookup: PrefixMap<number>, addr: Addr, length?: number): number {
  return lookup.find(addr, length) ?? 0
}

function lookupOf(nets: readonly PolicyRowOf<'nets'>[]): PrefixMap<number> {
  const lookup = new PrefixMap<number>()
  for (const { key, value } of nets) lookup.set(key.cidr, value.identity)
  return lookup
}

function identitiesIn({ ends, nets }: Whole, kernel: KernelPolicy): readonly number[] {
  const rows = [...ends, ...nets, ...kernel.nets].map(({ value }) => value.identity)
  return [...rows, ...[...kernel.ends.values()].map(({ identity }) => identity)]
}
