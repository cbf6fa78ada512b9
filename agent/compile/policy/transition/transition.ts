// SPDX-License-Identifier: Apache-2.0
/** A change in which endpoints get other sets while addresses get other identities: what stands between, so that
 * every packet is judged by all of the change or by nothing of it. Layer: agent/compile (pure).
 *
 * Sets that are left do not know new identities as new sets do, nor the other way round. So an address of which one
 * that is left would say something else goes through an identity between its two: sets that are left say of that
 * what they say of the old one, all others what they say of the new one. A set that one endpoint leaves while
 * another gets it would have to say both: the latter gets a twin of it first. */
import { isV4 } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { AddressChanges, Move } from '../identities/addresses.ts'
import type { Identities, Identity } from '../identities/identities.ts'
import type { LiveRuleset, LiveRulesets } from '../rulesets/rulesets.ts'
import type { Targets } from './written-rows.ts'
import { NO_SET } from '../tables.ts'
import type { SetId } from '../tables.ts'

export interface TransitionOptions {
  readonly sets: LiveRulesets
  readonly identities: Identities
  readonly moves: AddressChanges
}

export interface Plan {
  /** before endpoints turn */
  readonly first: Targets
  /** what is left when all have */
  readonly rest: Targets
  readonly between: ReadonlyMap<Addr, Identity>
  readonly twins: ReadonlyMap<LiveRuleset, LiveRuleset>
  /** whether open flows must be judged once more at the end */
  readonly isBridge: boolean
}

export class Transition {
  readonly #of: TransitionOptions
  readonly #ends = { v4: new Set<Addr>(), v6: new Set<Addr>() }
  #hosts = false
  readonly #left = new Set<LiveRuleset>()
  readonly #taken = new Set<LiveRuleset>()
  readonly #newcomers = new Set<Addr>()
  readonly #differences = new Map<string, Difference>()

  constructor(of: TransitionOptions) {
    this.#of = of
  }

  /** Sets that some endpoint leaves. */
  get left(): ReadonlySet<LiveRuleset> {
    return this.#left
  }

  /** Endpoints without a row that get one and sets with it: without them they would be open. */
  get newcomers(): ReadonlySet<Addr> {
    return this.#newcomers
  }

  /** The sets of an address, in the same order. */
  end(addr: Addr, before: readonly SetId[] | undefined, after: readonly SetId[]): void {
    const move = this.#of.moves.ends.get(addr)
    const turns = this.#slots(before ?? [], after, (set) => move !== undefined && asksOwn(set, this.#difference(move).atoms))
    if (turns) this.#ends[isV4(addr) ? 'v4' : 'v6'].add(addr)
    if (turns && before === undefined) this.#newcomers.add(addr)
  }

  /** Those of a host endpoint, of which any address may be this end's. */
  host(before: readonly SetId[], after: readonly SetId[]): void {
    const moves = [...this.#of.moves.ends.values(), ...this.#of.moves.nets.values()]
    const isAsked = (set: LiveRuleset): boolean =>
      set.compiled.own !== undefined && moves.some((move) => asksOwn(set, this.#difference(move).atoms))
    if (!this.#slots(before, after, isAsked)) return
    this.#hosts = true
    // several of them judge the same packet: they change together
    this.#slots(before, after, () => true)
  }

  /** When all have been told. */
  plan(): Plan {
    const { ends, nets } = this.#of.moves
    const between = new Map<Addr, Identity>()
    const first = { ends: new Map<Addr, Identity | undefined>(), nets: new Map<string, NetTarget>() }
    const rest = { ends: new Map<Addr, Identity | undefined>(), nets: new Map<string, NetTarget>() }
    const isTurning = this.#hosts || this.#ends.v4.size + this.#ends.v6.size > 0
    let isBridge = false
    for (const [addr, move] of ends) {
      if (this.#isAlone(addr)) continue
      // no endpoint sends from an address that is gone
      const by = move.isGone ? undefined : this.#between(move)
      if (by !== undefined) between.set(addr, by)
      if (by !== undefined) rest.ends.set(addr, move.now)
      if (!this.#newcomers.has(addr)) first.ends.set(addr, move.isGone ? undefined : (by ?? move.now))
    }
    for (const [key, move] of nets) {
      const by = this.#between(move)
      const { cidr, isGone, now } = move
      isBridge ||= by !== undefined
      first.nets.set(key, { cidr, identity: isGone && !isTurning ? undefined : (by ?? now) })
      if (by !== undefined || isGone) rest.nets.set(key, { cidr, identity: isGone ? undefined : now })
    }
    isBridge ||= between.size > 0
    return { first, rest, between, twins: isBridge ? this.#twins() : new Map(), isBridge }
  }

  /** True when some slot gets another set, or `isAsked` of the one that stays. */
  #slots(before: readonly SetId[], after: readonly SetId[], isAsked: (set: LiveRuleset) => boolean): boolean {
    let turns = false
    for (const [at, id] of after.entries()) {
      const [old, now] = [this.#of.sets.at(before[at] ?? NO_SET), this.#of.sets.at(id)]
      if (old === now && (old === undefined || !isAsked(old))) continue
      if (old !== undefined) this.#left.add(old)
      if (now !== undefined) this.#taken.add(now)
      turns = true
    }
    return turns
  }

  /** True when no other endpoint changes its rulesets: then the address's identity can be written together with
   * them. */
  #isAlone(addr: Addr): boolean {
    const turning = this.#ends[isV4(addr) ? 'v4' : 'v6']
    return !this.#hosts && turning.size === 1 && turning.has(addr)
  }

  /** undefined: sets that are left say the same of both. */
  #between(move: Move): Identity | undefined {
    return this.#difference(move).isAsked() ? this.#of.identities.between(move.was, move.now) : undefined
  }

  #twins(): ReadonlyMap<LiveRuleset, LiveRuleset> {
    const both = [...this.#left].filter((set) => this.#taken.has(set))
    return new Map(both.map((set) => [set, this.#of.sets.twinOf(set)]))
  }

  #difference({ was, now }: Move): Difference {
    const key = `${was.id} ${now.id}`
    const known = this.#differences.get(key)
    if (known !== undefined) return known
    const atoms = new Set([...was.isTrue].filter((atom) => !now.isTrue.has(atom)))
    for (const atom of now.isTrue) if (!was.isTrue.has(atom)) atoms.add(atom)
    let asked: boolean | undefined
    const isAsked = (): boolean => (asked ??= [...this.#of.sets.asking(atoms)].some((set) => this.#left.has(set)))
    const difference = { atoms, isAsked }
    this.#differences.set(key, difference)
    return difference
  }
}

type NetTarget = Targets['nets'] extends ReadonlyMap<string, infer T> ? T : never

/** Between two identities. */
interface Difference {
  readonly atoms: ReadonlySet<string>
  /** by a set that is left; when all have been told */
  readonly isAsked: () => boolean
}

function asksOwn({ compiled: { own } }: LiveRuleset, atoms: ReadonlySet<string>): boolean {
  return own !== undefined && [...atoms].some((atom) => own.atoms.has(atom))
}
