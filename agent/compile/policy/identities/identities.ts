// SPDX-License-Identifier: Apache-2.0
/** Classes of addresses of which the same is true, by number. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import { fnv1a64, mix32 } from '#lib/base/hash.ts'
import type { Predicate } from './predicates.ts'

/** A question that some set in use asks. */
export interface LivePredicate {
  readonly atom: Predicate
  /** grows from one to the next */
  readonly index: number
  readonly hash: number
  users: number
  /** rows that sets have, at the most, of each identity of which it is true: by whose sets they are, '' of the
   * cluster's */
  readonly rows: Map<string, number>
}

export function byIndex(a: LivePredicate, b: LivePredicate): number {
  return a.index - b.index
}

export interface Identity {
  /** 1 .. 2^32-1, of its atoms alone unless two share a hash; 0: nothing is true */
  readonly id: number
  readonly key: string
  /** ascending */
  readonly atoms: readonly LivePredicate[]
  /** keys of the same; of one between two, of those of the later */
  readonly isTrue: ReadonlySet<string>
  /** of one between two: the earlier, by which sets still judge that are being left */
  readonly was?: Identity
  /** addresses and prefixes that have it */
  users: number
}

export const NO_IDENTITY: Identity = { id: 0, key: '', atoms: [], isTrue: new Set(), users: 1 }
/** An address of ours of which nothing is true: with 0 programs would look for a prefix around it, which may be on
 * the move at that time. */
export const NO_IDENTITY_OF_OURS: Identity = { ...NO_IDENTITY, id: 0xffff_ffff }

export class Identities {
  readonly #byKey = new Map<string, Identity>([['', NO_IDENTITY]])
  readonly #byId = new Map<number, Identity>([
    [0, NO_IDENTITY],
    [NO_IDENTITY_OF_OURS.id, NO_IDENTITY_OF_OURS],
  ])
  readonly #byAtom = new Map<LivePredicate, Set<Identity>>()
  readonly #atoms = new Map<string, LivePredicate>()
  #nextIndex = 0
  #rows = 0

  /** Made since they were last taken away, and without users since then. */
  readonly made = new Set<Identity>()
  readonly unused = new Set<Identity>()

  get atoms(): Iterable<LivePredicate> {
    return this.#atoms.values()
  }

  /** how many live */
  get predicates(): number {
    return this.#atoms.size
  }

  get all(): Iterable<Identity> {
    return this.#byKey.values()
  }

  get size(): number {
    return this.#byId.size - 1
  }

  /** Rows that sets have of all of them, at the most. */
  get rows(): number {
    return this.#rows
  }

  /** A set of that owner has so many rows more of each identity of which the atom is true. */
  weigh(key: string, owner: string, rows: number): void {
    const atom = this.#atoms.get(key)
    if (atom === undefined) return
    const sum = (atom.rows.get(owner) ?? 0) + rows
    if (sum === 0) atom.rows.delete(owner)
    else atom.rows.set(owner, sum)
    this.#rows += rows * (this.#byAtom.get(atom)?.size ?? 0)
  }

  /** One more set asks it. True when it is new. */
  useAtom(atom: Predicate): { readonly live: LivePredicate; readonly isNew: boolean } {
    const known = this.#atoms.get(atom.key)
    if (known !== undefined) {
      known.users++
      return { live: known, isNew: false }
    }
    const live: LivePredicate = {
      atom,
      index: this.#nextIndex++,
      hash: Number.parseInt(fnv1a64(atom.key).slice(0, 8), 16),
      users: 1,
      rows: new Map(),
    }
    this.#atoms.set(atom.key, live)
    return { live, isNew: true }
  }

  /** One ruleset less asks it. Returns the predicate when no ruleset asks it any longer: then it must be removed from
   * everything. */
  dropAtom(key: string): LivePredicate | undefined {
    const live = this.#atoms.get(key)
    if (live === undefined || --live.users > 0) return undefined
    this.#atoms.delete(key)
    return live
  }

  /** `atoms` ascending, each once. */
  take(atoms: readonly LivePredicate[]): Identity {
    const key = atoms.map(({ index }) => index).join()
    return this.takeAgain(this.#byKey.get(key) ?? this.#make(key, atoms))
  }

  /** For one more user. */
  takeAgain(identity: Identity): Identity {
    if (identity.key !== '') identity.users++
    this.unused.delete(identity)
    return identity
  }

  /** One for as long as endpoints go from old sets to new ones; the next sweep takes it. */
  between(was: Identity, now: Identity): Identity {
    const key = `${was.key} then ${now.key}`
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const id = betweenId(was.id, now.id, (one) => this.#byId.has(one))
    const atoms = [...new Set([...was.atoms, ...now.atoms])]
    return this.#add({ id, key, atoms, isTrue: now.isTrue, was, users: 0 })
  }

  release(identity: Identity): void {
    if (identity.key !== '' && --identity.users === 0) this.unused.add(identity)
  }

  /** Forgets those that are without users, and says which. */
  *sweep(): Sliced<readonly Identity[]> {
    const gone = [...this.unused]
    for (const identity of gone) {
      this.#forget(identity)
      yield
    }
    return gone
  }

  /** The same of those that no set has heard of yet. */
  *sweepMade(): Sliced<void> {
    for (const identity of [...this.made]) {
      if (this.unused.has(identity)) this.#forget(identity)
      yield
    }
  }

  #forget(identity: Identity): void {
    this.#byKey.delete(identity.key)
    this.#byId.delete(identity.id)
    this.made.delete(identity)
    this.unused.delete(identity)
    for (const atom of identity.atoms) {
      const identities = this.#byAtom.get(atom)
      if (identities?.delete(identity) === true) this.#rows -= rowsOf(atom)
      if (identities?.size === 0) this.#byAtom.delete(atom)
    }
  }

  /** Those of which at least one of the atoms is true. */
  *having(keys: Iterable<string>): Sliced<ReadonlySet<Identity>> {
    const result = new Set<Identity>()
    for (const key of keys) {
      const atom = this.#atoms.get(key)
      if (atom !== undefined) for (const identity of this.#byAtom.get(atom) ?? []) result.add(identity)
      yield
    }
    return result
  }

  /** The sum of hashes does not depend on the order in which the atoms came to be. */
  #make(key: string, atoms: readonly LivePredicate[]): Identity {
    const id = freeId(mix32(atoms.reduce((sum, { hash }) => (sum + mix32(hash)) | 0, 0)), (one) => this.#byId.has(one))
    // a copy: it may be the list of a prefix, which grows and shrinks
    return this.#add({ id, key, atoms: [...atoms], isTrue: new Set(atoms.map(({ atom }) => atom.key)), users: 0 })
  }

  #add(identity: Identity): Identity {
    this.#byKey.set(identity.key, identity)
    this.#byId.set(identity.id, identity)
    this.made.add(identity)
    this.unused.add(identity)
    for (const atom of identity.atoms) {
      const identities = this.#byAtom.get(atom)
      if (identities === undefined) this.#byAtom.set(atom, new Set([identity]))
      else identities.add(identity)
      this.#rows += rowsOf(atom)
    }
    return identity
  }
}

/** The number of an identity between two: a hash of theirs, so that an agent that starts again gives the same. */
export function betweenId(was: number, now: number, isTaken: (id: number) => boolean): number {
  return freeId(mix32(mix32(was) ^ now), isTaken)
}

/** The content decides, so a shared hash costs the later one another number. */
function freeId(wish: number, isTaken: (id: number) => boolean): number {
  let id = wish
  while (id === 0 || isTaken(id)) id = (id + 1) >>> 0
  return id
}

/** Of all owners. */
export function rowsOf({ rows }: LivePredicate): number {
  let sum = 0
  for (const some of rows.values()) sum += some
  return sum
}
