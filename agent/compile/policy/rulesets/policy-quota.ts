// SPDX-License-Identifier: Apache-2.0
/** How much of the tables the policies of namespaces may have, and whose do not fit. Layer: agent/compile (pure).
 *
 * All rule lists together have half of each table: in a change the old ones stay until the last endpoint has the new
 * ones. The cluster's own policies come first, but they leave namespaces a quarter of the table. If namespaces want
 * more, the one that wants most gets nothing. So a namespace that fills a table alone, while the others are content
 * with half of the room, shuts out no other. */
import type { Sliced } from '#lib/base/async/slices.ts'
import { compareText } from '#lib/base/order.ts'
import type { Predicate } from '../identities/predicates.ts'
import { isSameRuleList } from '../rules/rule-list.ts'
import type { RuleList } from '../rules/rule-list.ts'

/** In this order they are asked: what is found out with ease first. */
const TABLES = ['rules', 'nets', 'ports', 'pages', 'bits'] as const
export type QuotaTable = (typeof TABLES)[number]
export type Rows = Readonly<Record<QuotaTable, number>>

/** Of the maps, np_<table>. */
export const TABLE_SIZES: Rows = { rules: 65536, ports: 16384, pages: 32768, bits: 262144, nets: 65536 }

/** Whose the lines are that no namespace has rules in. */
export const CLUSTER = ''

export interface PolicyQuotaOptions {
  readonly sizes: Rows
  readonly rulesOf: (line: RuleList) => number
  /** rows of a set with this line, but for those of identities; it has to be compiled for that */
  readonly rowsOf: (line: RuleList) => Sliced<CompiledRows>
  /** prefixes that an atom names */
  readonly netsOf: (atom: Predicate) => number
}

export type CompiledRows = Omit<Rows, 'rules' | 'nets'>

/** A line in use, with what was added for it. */
interface Counted {
  readonly line: RuleList
  readonly rules: number
  /** undefined: not yet */
  rows: CompiledRows | undefined
  /** by owner of the rules */
  readonly atoms: ReadonlyMap<string, ReadonlyMap<string, Predicate>>
  users: number
}

interface Owner {
  readonly rows: Record<QuotaTable, number>
  /** questions about prefixes, by key: a prefix that several lines name is there once */
  readonly named: Map<string, { readonly nets: number; users: number }>
  readonly uncounted: Set<Counted>
}

export class PolicyQuota {
  readonly #of: PolicyQuotaOptions
  /** by hash */
  readonly #lines = new Map<string, Counted[]>()
  readonly #owners = new Map<string, Owner>()
  /** of all namespaces */
  readonly #sum = emptyRows()

  constructor(of: PolicyQuotaOptions) {
    this.#of = of
  }

  /** One more group is to have the line. */
  *take(line: RuleList): Sliced<void> {
    const known = this.#find(line)
    if (known !== undefined) {
      known.users++
      return
    }
    const counted: Counted = { line, rules: this.#of.rulesOf(line), rows: undefined, atoms: yield* atomsOf(line), users: 1 }
    this.#lines.set(line.hash, [...(this.#lines.get(line.hash) ?? []), counted])
    this.#add(ownerOf(line), { rules: counted.rules }, 1).uncounted.add(counted)
    for (const [owner, atoms] of counted.atoms)
      for (const atom of atoms.values()) {
        this.#name(owner, atom)
        yield
      }
  }

  drop(line: RuleList): void {
    const known = this.#find(line)
    if (known === undefined || --known.users > 0) return
    const others = this.#lines.get(line.hash)?.filter((one) => one !== known) ?? []
    if (others.length === 0) this.#lines.delete(line.hash)
    else this.#lines.set(line.hash, others)
    for (const [owner, atoms] of known.atoms) for (const key of atoms.keys()) this.#unname(owner, key)
    this.#owners.get(ownerOf(line))?.uncounted.delete(known)
    this.#add(ownerOf(line), { rules: known.rules, ...known.rows }, -1)
  }

  size(table: QuotaTable): number {
    return this.#of.sizes[table]
  }

  /** Rows that there may be of all, and that namespaces may have in any case. */
  share(table: QuotaTable): readonly [all: number, least: number] {
    const size = this.#of.sizes[table]
    return [Math.floor(size / 2), Math.floor(size / 4)]
  }

  /** Rows that all namespaces may have. */
  most(table: QuotaTable): number {
    const [all, least] = this.share(table)
    return Math.max(all - this.rowsOf(CLUSTER, table), least)
  }

  /** Of all owners, closed or not. */
  sum(table: QuotaTable): number {
    return this.rowsOf(CLUSTER, table) + this.#sum[table]
  }

  rowsOf(owner: string, table: QuotaTable): number {
    return this.#owners.get(owner)?.rows[table] ?? 0
  }

  get namespaces(): readonly string[] {
    return [...this.#owners.keys()].filter((owner) => owner !== CLUSTER).sort(compareText)
  }

  /** Namespaces over their quota, and the table of which they want most: their endpoints get CLOSED, one rule that
   * denies. */
  *closed(): Sliced<ReadonlyMap<string, QuotaTable>> {
    const closed = new Map<string, QuotaTable>()
    for (const table of TABLES) {
      // a namespace that has too many rules or prefixes is closed: its other rows need not be counted
      if (table === 'ports') for (const owner of this.#owners.keys()) if (!closed.has(owner)) yield* this.#count(owner)
      let over = this.#sum[table] - this.most(table)
      if (over <= 0) continue
      for (const owner of closed.keys()) over -= this.rowsOf(owner, table)
      const open = this.namespaces.filter((owner) => !closed.has(owner))
      // of equal ones the first by name
      for (const owner of open.sort((a, b) => this.rowsOf(b, table) - this.rowsOf(a, table))) {
        if (over <= 0) break
        closed.set(owner, table)
        over -= this.rowsOf(owner, table)
      }
    }
    return closed
  }

  *#count(owner: string): Sliced<void> {
    const uncounted = this.#owners.get(owner)?.uncounted ?? new Set()
    for (const counted of uncounted) {
      counted.rows = yield* this.#of.rowsOf(counted.line)
      this.#add(owner, counted.rows, 1)
    }
    uncounted.clear()
  }

  #find(line: RuleList): Counted | undefined {
    return this.#lines.get(line.hash)?.find((one) => isSameRuleList(one.line, line))
  }

  #add(owner: string, rows: Partial<Rows>, by: 1 | -1): Owner {
    const of = this.#owners.get(owner) ?? { rows: emptyRows(), named: new Map(), uncounted: new Set() }
    this.#owners.set(owner, of)
    for (const table of TABLES) {
      const more = by * (rows[table] ?? 0)
      of.rows[table] += more
      if (owner !== CLUSTER) this.#sum[table] += more
    }
    if (of.named.size === 0 && TABLES.every((table) => of.rows[table] === 0)) this.#owners.delete(owner)
    return of
  }

  #name(owner: string, atom: Predicate): void {
    const known = this.#owners.get(owner)?.named.get(atom.key)
    if (known !== undefined) {
      known.users++
      return
    }
    const nets = this.#of.netsOf(atom)
    if (nets === 0) return
    this.#add(owner, { nets }, 1)
    this.#owners.get(owner)?.named.set(atom.key, { nets, users: 1 })
  }

  #unname(owner: string, key: string): void {
    const of = this.#owners.get(owner)
    const known = of?.named.get(key)
    if (of === undefined || known === undefined || --known.users > 0) return
    of.named.delete(key)
    this.#add(owner, { nets: known.nets }, -1)
  }
}

function ownerOf({ owner = CLUSTER }: RuleList): string {
  return owner
}

function emptyRows(): Record<QuotaTable, number> {
  return { rules: 0, ports: 0, pages: 0, bits: 0, nets: 0 }
}

/** By owner of the rules that ask: what is asked about prefixes and services. */
function* atomsOf({ rules }: RuleList): Sliced<Counted['atoms']> {
  const atoms = new Map<string, Map<string, Predicate>>()
  for (const { rule } of rules) {
    for (const { atom } of [...rule.peer, ...rule.own]) {
      if (atom.question.kind !== 'nets' && atom.question.kind !== 'services') continue
      const owner = rule.owner ?? CLUSTER
      const some = atoms.get(owner) ?? new Map<string, Predicate>()
      atoms.set(owner, some)
      some.set(atom.key, atom)
    }
    yield
  }
  return atoms
}
