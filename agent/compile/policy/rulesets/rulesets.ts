// SPDX-License-Identifier: Apache-2.0
/** Sets in use, and what each says of each identity. Layer: agent/compile (pure). */
import { atOnce, type Sliced } from '#lib/base/async/slices.ts'
import { DIMENSION_OWN, DIMENSION_PEER, RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import { InternalError } from '#lib/base/errors.ts'
import { fnv1a64 } from '#lib/base/hash.ts'
import type { Addresses } from '../identities/addresses.ts'
import type { Identity } from '../identities/identities.ts'
import { isSameRuleList } from '../rules/rule-list.ts'
import type { RuleList } from '../rules/rule-list.ts'
import { RuleNumbers } from './rule-numbers.ts'
import type { CompiledRows } from './policy-quota.ts'
import { bitsRow, compileRuleset, ruleRows } from './compile-ruleset.ts'
import type { CompiledRuleset } from './compile-ruleset.ts'
import { bitsOf } from './peer-bitmaps.ts'
import type { SideTable } from './peer-bitmaps.ts'
import { peerOnlyVerdicts } from './peer-only-verdict.ts'
import { NO_SET } from '../tables.ts'
import type { SetId, SetRow } from '../tables.ts'

const NONE: ReadonlySet<SetId> = new Set()

export interface LiveRuleset {
  readonly compiled: CompiledRuleset
  readonly line: RuleList
  readonly ruleNames: readonly string[]
  /** rows of identities that differ from those of identity 0 */
  readonly rowsOf: Map<Identity, readonly SetRow[]>
  readonly rules: readonly SetRow[]
  users: number
  /** those of them that are to keep it */
  wanted: number
}

export class LiveRulesets {
  readonly numbers = new RuleNumbers()
  readonly #addresses: Addresses
  readonly #byId = new Map<SetId, LiveRuleset>()
  /** by key of the atom: sets that ask it */
  readonly #askers = new Map<string, Set<LiveRuleset>>()
  /** taken since rows were last asked for */
  readonly #fresh = new Set<LiveRuleset>()
  /** of lines that may never be in use, until rows are asked for */
  readonly #compiled = new Map<RuleList, CompiledRuleset>()
  /** rows but for those of identities */
  #bits = 0

  constructor(addresses: Addresses) {
    this.#addresses = addresses
  }

  at(id: SetId): LiveRuleset | undefined {
    return this.#byId.get(id)
  }

  get all(): Iterable<LiveRuleset> {
    return this.#byId.values()
  }

  /** How many there are of the set that it is, or would be. */
  *rowsOf(line: RuleList): Sliced<CompiledRows> {
    const { id, known } = this.#find(line)
    const compiled = known?.compiled ?? (yield* compileRuleset(id, line))
    if (known === undefined) this.#compiled.set(line, compiled)
    const rows = { ports: 0, pages: 0, bits: 0 }
    for (const { table } of compiled.rows) if (table !== 'rules') rows[table]++
    return rows
  }

  /** One more endpoint has this line. */
  *take(line: RuleList): Sliced<LiveRuleset> {
    const { id, known } = this.#find(line)
    const set = known ?? (yield* this.#add(id, line))
    if (known !== undefined) known.users++
    if (set.wanted++ === 0) yield* this.#weigh(set, 1)
    return set
  }

  /** An endpoint that has it is to have another. */
  *leave(set: LiveRuleset): Sliced<void> {
    if (--set.wanted === 0) yield* this.#weigh(set, -1)
  }

  /** The most rows there are while rulesets that some endpoint is leaving are still there. */
  *bitsWith(old: readonly LiveRuleset[]): Sliced<number> {
    const leaving = new Set(old.filter(({ wanted }) => wanted === 0))
    for (const set of leaving) yield* this.#weigh(set, 1)
    const rows = this.#bits + this.#addresses.identities.rows
    for (const set of leaving) yield* this.#weigh(set, -1)
    return rows
  }

  /** Rows of identities count for as long as the set is wanted. */
  *#weigh(set: LiveRuleset, by: 1 | -1): Sliced<void> {
    const { identities } = this.#addresses
    const owner = set.line.owner ?? ''
    for (const { askers } of sidesOf(set))
      for (const [key, rules] of askers) {
        identities.weigh(key, owner, by * blocksIn(rules))
        yield
      }
  }

  /** The same line under another name. */
  twinOf(ruleset: SetId): LiveRuleset {
    const line = this.#byId.get(ruleset)?.line
    if (line === undefined) throw new InternalError(`ruleset ${ruleset} is not in use`)
    return atOnce(
      this.#add(
        twinId(ruleset, (id) => this.#byId.has(id)),
        line,
      ),
    )
  }

  *#add(id: SetId, line: RuleList): Sliced<LiveRuleset> {
    const ruleNames = [...new Set(line.rules.map(({ rule }) => rule.name))]
    const numbers = new Map<string, number>()
    for (const name of ruleNames) {
      numbers.set(name, this.numbers.take(name))
      yield
    }
    const known = this.#compiled.get(line)
    const compiled = known?.id === id ? known : yield* compileRuleset(id, line)
    const rules = ruleRows(id, line.rules, (name) => numbers.get(name) ?? 0)
    const set: LiveRuleset = { compiled, line, ruleNames, rules, rowsOf: new Map(), users: 1, wanted: 0 }
    this.#byId.set(id, set)
    this.#bits += bitsIn(compiled)
    for (const side of sidesOf(set))
      for (const [key, atom] of side.atoms) {
        yield* this.#addresses.useAtom(atom)
        const askers = this.#askers.get(key)
        if (askers === undefined) this.#askers.set(key, new Set([set]))
        else askers.add(set)
        yield
      }
    this.#fresh.add(set)
    return set
  }

  /** One endpoint less. Returns all rows of a set that is no longer in use: they are to be removed. */
  *release(set: LiveRuleset | undefined): Sliced<readonly SetRow[]> {
    if (set === undefined || --set.users > 0) return []
    this.#byId.delete(set.compiled.id)
    this.#bits -= bitsIn(set.compiled)
    this.#fresh.delete(set)
    for (const name of set.ruleNames) this.numbers.release(name)
    for (const side of sidesOf(set))
      for (const key of side.atoms.keys()) {
        yield* this.#addresses.dropAtom(key)
        const askers = this.#askers.get(key)
        askers?.delete(set)
        if (askers?.size === 0) this.#askers.delete(key)
        yield
      }
    return [...set.compiled.rows, ...set.rules, ...[...set.rowsOf.values()].flat()]
  }

  /** Rows of sets that are new, and of all sets about identities that are: those that are being left judge one
   * between two by the earlier. */
  *takeNewRows(left: ReadonlySet<SetId> = NONE): Sliced<readonly SetRow[]> {
    const rows: SetRow[] = []
    const { identities } = this.#addresses
    for (const set of this.#fresh) {
      for (const row of set.compiled.rows) rows.push(row)
      for (const row of set.rules) rows.push(row)
      for (const identity of yield* identities.having(sidesOf(set).flatMap((side) => [...side.atoms.keys()]))) {
        this.#describe(set, { identity, as: identity }, rows)
        yield
      }
    }
    for (const identity of identities.made) {
      for (const set of this.#askingOf(identity))
        if (!this.#fresh.has(set))
          this.#describe(set, { identity, as: left.has(set.compiled.id) ? (identity.was ?? identity) : identity }, rows)
      yield
    }
    identities.made.clear()
    this.#fresh.clear()
    this.#compiled.clear()
    return rows
  }

  /** Rows about an identity that no address has any longer. */
  forget(identity: Identity): readonly SetRow[] {
    const rows: SetRow[] = []
    for (const set of this.#askingOf(identity)) {
      for (const row of set.rowsOf.get(identity) ?? []) rows.push(row)
      set.rowsOf.delete(identity)
    }
    return rows
  }

  /** Sets that ask at least one of these atoms. */
  asking(keys: Iterable<string>): ReadonlySet<LiveRuleset> {
    const sets = new Set<LiveRuleset>()
    for (const key of keys) for (const set of this.#askers.get(key) ?? []) sets.add(set)
    return sets
  }

  #askingOf({ atoms }: Identity): ReadonlySet<LiveRuleset> {
    return this.asking(atoms.map(({ atom }) => atom.key))
  }

  #describe(set: LiveRuleset, { identity, as }: { readonly identity: Identity; readonly as: Identity }, rows: SetRow[]): void {
    const own: SetRow[] = []
    const { compiled } = set
    for (const [dimension, side] of [[DIMENSION_PEER, compiled.peer] as const, [DIMENSION_OWN, compiled.own] as const]) {
      if (side === undefined) continue
      for (const [block, bits] of bitsOf(side, as.isTrue).entries()) {
        if (bits === undefined) continue
        const sure = block === 0 && dimension === DIMENSION_PEER ? peerOnlyVerdicts(set.line.rules, bits) : undefined
        own.push(bitsRow({ set: compiled.id, class: identity.id, block, dimension }, bits, sure))
      }
    }
    if (own.length > 0) set.rowsOf.set(identity, own)
    for (const row of own) rows.push(row)
  }

  /** The set with this line, or the id it is to have: the line's hash, unless another line has that. */
  #find(line: RuleList): { readonly id: SetId; readonly known: LiveRuleset | undefined } {
    let id = line.hash
    for (;;) {
      const known = this.#byId.get(id)
      if (known !== undefined && isSameRuleList(known.line, line)) return { id, known }
      if (known === undefined && id !== NO_SET) return { id, known }
      id = fnv1a64(id)
    }
  }
}

/** The name of a ruleset's twin. */
export function twinId(ruleset: SetId, isTaken: (id: SetId) => boolean): SetId {
  let id = ruleset
  while (id === NO_SET || isTaken(id)) id = fnv1a64(id)
  return id
}

function sidesOf({ compiled }: LiveRuleset): readonly SideTable[] {
  return compiled.own === undefined ? [compiled.peer] : [compiled.peer, compiled.own]
}

function bitsIn({ rows }: CompiledRuleset): number {
  return rows.filter(({ table }) => table === 'bits').length
}

/** In how many blocks these rules are, which are in order. */
function blocksIn(rules: readonly number[]): number {
  return rules.filter((rule, at) => Math.floor(rule / RULES_PER_BLOCK) !== Math.floor((rules[at - 1] ?? -1) / RULES_PER_BLOCK)).length
}
