// SPDX-License-Identifier: Apache-2.0
/** From what the kernel has, of which we know no more than its rows, to a whole that is another one: so that no
 * packet is judged by half of either. Layer: agent/dataplane (pure).
 *
 * Old sets do not know new identities, nor new sets old ones. So each pair of an old and a new identity that some
 * address goes through gets an identity of its own for the time between, of which old sets say what they say of the
 * old one, and new sets what they say of the new. */
import { DIMENSION_PORT, DIMENSION_SOURCE_PORT } from '#lib/base/bpf-constants.ts'
import { mix32 } from '#lib/base/hash.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { EndSets, EndValue, PolicyRow, PolicyRowOf, PolicyStep, SetRow } from '#agent/compile/policy/tables.ts'
import { NO_SET, prefixOf } from '../maps/encode-rows.ts'
import { PrefixLookup } from './lpm.ts'

const NO_SETS: EndSets = { ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }

export interface KernelPolicy {
  /** asked for when there is something to bridge */
  readonly bits: () => readonly PolicyRowOf<'bits'>[]
  readonly nets: readonly PolicyRowOf<'nets'>[]
  readonly ends: ReadonlyMap<Addr, EndValue>
}

/** The steps of the whole with those between put in; the same steps where no address changes its identity. */
export function restartTransition(steps: readonly PolicyStep[], kernel: KernelPolicy): readonly PolicyStep[] {
  const whole = wholeOf(steps)
  if (kernel.nets.length === 0 && !whole.ends.some(({ key }) => kernel.ends.has(key.addr))) return steps
  const pairs = new Pairs({ before: kernel.bits, learn: whole.learn })
  const [before, after] = [lookupOf(kernel.nets), lookupOf(whole.nets)]
  const ends = whole.ends.map((row) => {
    const { addr } = row.key
    const was = kernel.ends.get(addr)
    const identity = pairs.between(was?.identity || before.find(addr), row.value.identity || after.find(addr))
    return { row, was, identity }
  })
  const gone = kernel.nets.filter(({ key }) => !after.has(key.cidr))
  const nets = [...whole.nets, ...gone].map(({ key: { cidr } }) => {
    const around = [before, after].map((lookup) => lookup.find(cidr.addr, prefixOf(cidr)))
    return netRow(cidr, pairs.between(around[0] ?? 0, around[1] ?? 0))
  })
  if (pairs.size === 0) return steps
  const between = pairs.rows()
  // a new endpoint gets its identity together with its sets: without them it would be open
  const isNew = ({ row, was }: (typeof ends)[number]): boolean => was === undefined && hasSets(row.value)
  const moved = ends.filter((end) => !isNew(end)).map(({ row, was, identity }) => endRow(row.key.addr, { ...(was ?? NO_SETS), identity }))
  const flipped = (those: typeof ends): EndRow[] => those.map(({ row, identity }) => endRow(row.key.addr, { ...row.value, identity }))
  return [
    { kind: 'learn', rows: [...whole.learn, ...between] },
    { kind: 'move', rows: [...nets.sort(narrowFirst), ...moved] },
    { kind: 'flip', rows: flipped(ends.filter(isNew)) },
    { kind: 'flip', rows: [...flipped(ends.filter((end) => !isNew(end))), ...whole.hosts] },
    { kind: 'epoch', epoch: 'next' },
    { kind: 'move', rows: [...whole.nets, ...whole.ends] },
    { kind: 'forget', rows: [...gone.toSorted((a, b) => narrowFirst(b, a)), ...between] },
  ]
}

type EndRow = PolicyRowOf<'ends'>
type NetRow = PolicyRowOf<'nets'>

function narrowFirst(a: NetRow, b: NetRow): number {
  return prefixOf(b.key.cidr) - prefixOf(a.key.cidr)
}

/** An identity for each pair of different ones, apart from all that are in use. */
class Pairs {
  readonly #of: PairsOf
  readonly #byPair = new Map<string, { readonly old: number; readonly now: number; readonly between: number }>()
  #before: readonly PolicyRowOf<'bits'>[] = []
  #after: readonly PolicyRowOf<'bits'>[] = []
  #taken: Set<number> | undefined

  constructor(of: PairsOf) {
    this.#of = of
  }

  get size(): number {
    return this.#byPair.size
  }

  between(old: number, now: number): number {
    if (old === now) return now
    const key = `${old} ${now}`
    const known = this.#byPair.get(key)
    if (known !== undefined) return known.between
    this.#taken ??= this.#read()
    let between = mix32(mix32(old) ^ now)
    while (between === 0 || this.#taken.has(between)) between = (between + 1) >>> 0
    this.#taken.add(between)
    this.#byPair.set(key, { old, now, between })
    return between
  }

  #read(): Set<number> {
    this.#before = this.#of.before()
    this.#after = this.#of.learn.filter((row) => row.table === 'bits')
    return new Set([...this.#before, ...this.#after].map(({ key }) => key.class))
  }

  /** What sets say of the identities between. Sets that stay say of them what they say of the new ones. */
  rows(): readonly SetRow[] {
    const staying = new Set(this.#of.learn.map(({ key }) => key.set))
    const leaving = byIdentity(this.#before.filter(({ key }) => !staying.has(key.set)))
    const coming = byIdentity(this.#after)
    return [...this.#byPair.values()].flatMap(({ old, now, between }) =>
      [...(leaving.get(old) ?? []), ...(coming.get(now) ?? [])].map((row): SetRow => ({
        table: 'bits',
        key: { ...row.key, class: between },
        value: row.value,
      })),
    )
  }
}

interface PairsOf {
  readonly before: KernelPolicy['bits']
  readonly learn: readonly SetRow[]
}

function byIdentity(rows: readonly PolicyRowOf<'bits'>[]): ReadonlyMap<number, readonly PolicyRowOf<'bits'>[]> {
  const ofIdentities = rows.filter(({ key }) => key.dimension !== DIMENSION_PORT && key.dimension !== DIMENSION_SOURCE_PORT)
  return Map.groupBy(ofIdentities, ({ key }) => key.class)
}

function hasSets({ ingress, egress, stagedIngress, stagedEgress }: EndSets): boolean {
  return [ingress, egress, stagedIngress, stagedEgress].some((set) => set !== NO_SET)
}

interface Whole {
  readonly learn: readonly SetRow[]
  readonly nets: readonly PolicyRowOf<'nets'>[]
  readonly ends: readonly PolicyRowOf<'ends'>[]
  readonly hosts: readonly PolicyRowOf<'hosts'>[]
}

/** The last word of each row. */
function wholeOf(steps: readonly PolicyStep[]): Whole {
  const rows = steps.flatMap((step): readonly PolicyRow[] => (step.kind === 'epoch' ? [] : step.rows))
  const ends = new Map(rows.flatMap((row) => (row.table === 'ends' ? [[row.key.addr, row] as const] : [])))
  const nets = rows.filter((row) => row.table === 'nets')
  return {
    learn: rows.filter((row): row is SetRow => row.table !== 'ends' && row.table !== 'nets' && row.table !== 'hosts'),
    nets,
    ends: [...ends.values()],
    hosts: rows.filter((row) => row.table === 'hosts'),
  }
}

function lookupOf(nets: readonly PolicyRowOf<'nets'>[]): PrefixLookup {
  const lookup = new PrefixLookup()
  for (const { key, value } of nets) lookup.set(key.cidr, value.identity)
  return lookup
}

function netRow(cidr: Cidr, identity: number): PolicyRowOf<'nets'> {
  return { table: 'nets', key: { cidr }, value: { identity } }
}

function endRow(addr: Addr, value: EndSets & { readonly identity: number }): PolicyRowOf<'ends'> {
  return { table: 'ends', key: { addr }, value }
}
