// SPDX-License-Identifier: Apache-2.0
/** Which identity each address and prefix has, kept up to date. Layer: agent/compile (pure). */
import { inBatches, type Sliced } from '#lib/base/async/slices.ts'
import { addrBits, ANY_V4, depthOf, prefixKey } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { NAMESPACE_LABEL } from '#lib/model/labels.ts'
import type { AddressChanges, IdentityMove, NetMove } from './address-changes.ts'
import { truthOf } from './predicates.ts'
import type { Predicate } from './predicates.ts'
import { AlikeLists } from './alike-lists.ts'
import { GonePredicates, hasPredicate } from './gone-predicates.ts'
import { byIndex, Identities, NO_IDENTITY, NO_IDENTITY_OF_OURS } from './identities.ts'
import type { Identity, LivePredicate } from './identities.ts'
import { Prefixes } from './prefixes.ts'
import type { Prefix } from './prefixes.ts'
import { EndpointProfiles } from './endpoint-profiles.ts'
import type { EndpointProfile } from './endpoint-profiles.ts'

/** Bits of an address in the map. */
const WHOLE = 128
const V4_KEY = prefixKey(ANY_V4, 96)
const NO_ATOMS: readonly LivePredicate[] = []
const NONE: ReadonlySet<string> = new Set()
/** Predicates times addresses and prefixes: each of these has a predicate once for each prefix around it, at most. */
const WORTH_WEIGHING = 32_768

interface Known {
  /** endpoints that have the address; one twice counts twice */
  readonly things: EndpointProfile[]
  /** undefined: not determined yet */
  identity: Identity | undefined
}

export class Addresses {
  readonly identities = new Identities()
  readonly things = new EndpointProfiles()
  readonly #prefixes = new Prefixes()
  readonly #ends = new Map<Addr, Known>()
  readonly #users = new Map<EndpointProfile, { readonly addrs: Set<Addr>; readonly prefixes: Set<Prefix> }>()
  /** prefixes of an atom that is about prefixes or services */
  readonly #named = new Map<LivePredicate, readonly Prefix[]>()
  readonly #dirtyEnds = new Set<Addr>()
  readonly #dirtyPrefixes = new Set<string>()
  readonly #gone = new GonePredicates()
  /** network sets that have prefixes */
  readonly #sets = new Set<EndpointProfile>()
  /** namespaces whose network sets count for nothing */
  #leftOut = NONE
  #hiddenV4 = false

  /** What the compiler knows of services: the addresses that such an atom is true of. */
  readonly #servicesAddrs: (atom: Predicate) => readonly Addr[]

  constructor(servicesAddrs: (atom: Predicate) => readonly Addr[]) {
    this.#servicesAddrs = servicesAddrs
  }

  get size(): number {
    return this.#ends.size
  }

  has(addr: Addr): boolean {
    return this.#ends.has(addr)
  }

  identityOf(addr: Addr): Identity {
    return this.#ends.get(addr)?.identity ?? NO_IDENTITY
  }

  /** The endpoint gets the address, or loses it. */
  attach(addr: Addr, thing: EndpointProfile): void {
    const known = this.#ends.get(addr) ?? { things: [], identity: undefined }
    known.things.push(thing)
    this.#ends.set(addr, known)
    this.#usersOf(thing).addrs.add(addr)
    this.#dirtyEnds.add(addr)
  }

  detach(addr: Addr, thing: EndpointProfile): void {
    const known = this.#ends.get(addr)
    if (known === undefined) return
    takeOut(known.things, thing)
    if (!known.things.includes(thing)) this.#forgetUser(thing, (users) => users.addrs.delete(addr))
    this.#dirtyEnds.add(addr)
  }

  /** The same with network sets and their prefixes. */
  attachNet(cidr: Cidr, thing: EndpointProfile): void {
    const prefix = this.#prefixes.at(cidr)
    prefix.things.push(thing)
    this.#sets.add(thing)
    this.#usersOf(thing).prefixes.add(prefix)
    this.#dirtyPrefixes.add(prefix.key)
  }

  detachNet(cidr: Cidr, thing: EndpointProfile): void {
    const prefix = this.#prefixes.at(cidr)
    takeOut(prefix.things, thing)
    if (!prefix.things.includes(thing)) this.#forgetUser(thing, (users) => users.prefixes.delete(prefix))
    if (!this.#users.has(thing)) this.#sets.delete(thing)
    this.#dirtyPrefixes.add(prefix.key)
  }

  /** By namespace, '' of none: prefixes of its network sets, and those of them of which something is asked. Sets with
   * equal labels count as one. */
  get setPrefixes(): ReadonlyMap<string, { readonly all: number; readonly asked: number }> {
    const namespaces = new Map<string, { all: number; asked: number }>()
    for (const thing of this.#sets) {
      const known = namespaces.get(namespaceOf(thing)) ?? { all: 0, asked: 0 }
      namespaces.set(namespaceOf(thing), known)
      const prefixes = this.#users.get(thing)?.prefixes.size ?? 0
      known.all += prefixes
      if (thing.atoms.length > 0) known.asked += prefixes
    }
    return namespaces
  }

  /** Network sets of these namespaces, and of no others, count for nothing from now on. */
  *leaveOut(namespaces: ReadonlySet<string>): Sliced<void> {
    const before = this.#leftOut
    this.#leftOut = namespaces
    for (const thing of this.#sets)
      if (before.has(namespaceOf(thing)) !== namespaces.has(namespaceOf(thing)))
        yield* inBatches(this.#users.get(thing)?.prefixes ?? [], ({ key }) => {
          this.#dirtyPrefixes.add(key)
        })
  }

  *useAtom(atom: Predicate): Sliced<void> {
    const { live, isNew } = this.identities.useAtom(atom)
    if (!isNew) return
    const { question } = atom
    if (question.kind === 'nets' || question.kind === 'services') return yield* this.#nameNets(live)
    const isTrue = truthOf(question)
    // a selector may be so long that to make it ready, and to look for what it needs, are a slice each
    yield
    yield* inBatches(this.things.candidates(question), (thing) => {
      if (thing.atoms.at(-1) === live || !isTrue(thing)) return
      thing.atoms.push(live)
      this.#markThing(thing)
    })
  }

  *dropAtom(key: string): Sliced<void> {
    const gone = this.identities.dropAtom(key)
    if (gone === undefined) return
    const { question } = gone.atom
    if (question.kind === 'nets' || question.kind === 'services') {
      for (const prefix of this.#takeNames(gone)) this.#gone.add(gone, prefix)
      return
    }
    yield* inBatches(this.things.candidates(question), (thing) => {
      if (!hasPredicate(thing.atoms, gone)) return
      this.#gone.add(gone, thing)
      this.#markThing(thing)
    })
  }

  /** The endpoints of the services that this live atom is about are others. */
  *servicesChanged(live: LivePredicate): Sliced<void> {
    yield* inBatches(this.#takeNames(live), (prefix) => {
      takeOut(prefix.atoms, live)
    })
    yield* this.#nameNets(live)
  }

  *#nameNets(live: LivePredicate): Sliced<void> {
    const { question } = live.atom
    const cidrs = question.kind === 'nets' ? question.nets : this.#servicesAddrs(live.atom).map((addr) => ({ addr, bits: addrBits(addr) }))
    const prefixes = new Set<Prefix>()
    for (const cidr of cidrs) {
      prefixes.add(this.#prefixes.at(cidr))
      yield
    }
    for (const prefix of prefixes) {
      prefix.atoms.push(live)
      // one that has named the prefix before comes back behind younger ones
      if ((prefix.atoms.at(-2)?.index ?? -1) > live.index) prefix.atoms.sort(byIndex)
      this.#dirtyPrefixes.add(prefix.key)
      yield
    }
    this.#named.set(live, [...prefixes])
  }

  /** The prefixes that it has named, and names no more. */
  #takeNames(live: LivePredicate): readonly Prefix[] {
    const prefixes = this.#named.get(live) ?? []
    for (const { key } of prefixes) this.#dirtyPrefixes.add(key)
    this.#named.delete(live)
    return prefixes
  }

  /** Predicates of all identities that {@link settle} would look for: those of prefixes, and of addresses, alike ones
   * once. Prefixes within those of many predicates have all of these. Nothing where they cannot be many. */
  *weigh(): Sliced<AlikeLists> {
    yield* this.#gone.takeOut()
    yield* this.#spread()
    const alike = new AlikeLists()
    if (this.identities.predicates * (this.#dirtyPrefixes.size + this.#dirtyEnds.size) < WORTH_WEIGHING) return alike
    for (const key of this.#dirtyPrefixes) {
      const prefix = this.#prefixes.get(key)
      if (prefix !== undefined) alike.add(this.#listsAround(prefix.cidr.addr, depthOf(prefix.cidr)))
      yield
    }
    for (const addr of this.#dirtyEnds) {
      alike.add(this.#listsAround(addr, WHOLE, this.#ends.get(addr)?.things))
      yield
    }
    return alike
  }

  /** Brings everything up to date. */
  *settle(): Sliced<AddressChanges> {
    yield* this.#gone.takeOut()
    yield* this.#spread()
    const prefixes = [...this.#dirtyPrefixes].flatMap((key) => this.#prefixes.get(key) ?? [])
    const strangers: Identity[] = []
    for (const prefix of prefixes) {
      strangers.push(this.#prefixes.identityAround(prefix.cidr.addr, depthOf(prefix.cidr)))
      yield
    }
    const ends: EndBefore[] = []
    yield* inBatches(this.#dirtyEnds, (addr) => {
      const known = this.#ends.get(addr)
      if (known !== undefined) ends.push({ addr, known, was: known.identity ?? this.#prefixes.identityAround(addr, WHOLE) })
    })
    this.#dirtyPrefixes.clear()
    this.#dirtyEnds.clear()
    const had = prefixes.map(({ key, identity }) => identity !== undefined || (key === V4_KEY && this.#hiddenV4))
    const changed: boolean[] = []
    for (const prefix of prefixes) {
      changed.push(this.#settlePrefix(prefix))
      yield
    }
    const nets = new Map<string, NetMove>()
    for (const [at, { key, cidr, identity }] of prefixes.entries()) {
      if (changed[at] === true)
        nets.set(key, {
          cidr,
          was: strangers[at] ?? NO_IDENTITY,
          now: this.#prefixes.identityAround(cidr.addr, depthOf(cidr)),
          isGone: identity === undefined,
          isNew: had[at] === false,
        })
      yield
    }
    this.#coverV4(nets)
    const known = new Map<readonly LivePredicate[], Identity>()
    const moves = new Map<Addr, IdentityMove>()
    for (const end of ends) {
      moves.set(end.addr, this.#settleEnd(end, known))
      yield
    }
    return { ends: moves, nets }
  }

  /** Whatever is within a dirty prefix is dirty as well. */
  *#spread(): Sliced<void> {
    const wide = new Set<string>()
    for (const key of this.#dirtyPrefixes) {
      const prefix = this.#prefixes.get(key)
      if (prefix === undefined) continue
      if (depthOf(prefix.cidr) < WHOLE) wide.add(key)
      else if (this.#ends.has(prefix.cidr.addr)) this.#dirtyEnds.add(prefix.cidr.addr)
      yield
    }
    if (wide.size === 0) return
    for (const { key, cidr } of this.#prefixes.values()) {
      if (this.#prefixes.around(cidr.addr, depthOf(cidr)).some((around) => wide.has(around.key))) this.#dirtyPrefixes.add(key)
      yield
    }
    for (const addr of this.#ends.keys()) {
      if (this.#prefixes.around(addr, WHOLE).some((around) => wide.has(around.key))) this.#dirtyEnds.add(addr)
      yield
    }
  }

  /** True when its row is another one. */
  #settlePrefix(prefix: Prefix): boolean {
    const { cidr, identity: before } = prefix
    prefix.identity = this.#hasOwn(prefix) ? this.identities.take(this.#atomsAround(cidr.addr, depthOf(cidr))) : undefined
    if (before !== undefined) this.identities.release(before)
    if (prefix.things.length === 0 && prefix.atoms.length === 0) this.#prefixes.delete(prefix)
    return before !== prefix.identity
  }

  /** `sameAtoms`: identities by the list of their predicates, which addresses alike have in common. */
  #settleEnd({ addr, known, was }: EndBefore, sameAtoms: Map<readonly LivePredicate[], Identity>): IdentityMove {
    const { identity: before } = known
    const isGone = known.things.length === 0
    const atoms = isGone ? NO_ATOMS : this.#atomsAround(addr, WHOLE, known.things)
    const same = sameAtoms.get(atoms)
    const identity = same === undefined ? this.identities.take(atoms) : this.identities.takeAgain(same)
    if (atoms === known.things[0]?.atoms) sameAtoms.set(atoms, identity)
    known.identity = identity === NO_IDENTITY ? NO_IDENTITY_OF_OURS : identity
    if (before !== undefined) this.identities.release(before)
    if (isGone) this.#ends.delete(addr)
    return { was, now: isGone ? this.#prefixes.identityAround(addr, WHOLE) : known.identity, isGone }
  }

  #atomsAround(addr: Addr, depth: number, things: readonly EndpointProfile[] = []): readonly LivePredicate[] {
    const lists = this.#listsAround(addr, depth, things)
    const [first] = lists
    if (lists.length === 1 && first !== undefined) return first
    return [...new Set(lists.flat())].sort(byIndex)
  }

  #listsAround(addr: Addr, depth: number, things: readonly EndpointProfile[] = []): readonly (readonly LivePredicate[])[] {
    const lists: (readonly LivePredicate[])[] = things.map((thing) => thing.atoms)
    for (const prefix of this.#prefixes.around(addr, depth)) {
      lists.push(prefix.atoms)
      for (const set of prefix.things) lists.push(this.#askedOf(set))
    }
    return lists
  }

  /** Does it say more than the prefix around it? */
  #hasOwn({ atoms, things }: Prefix): boolean {
    return atoms.length > 0 || things.some((set) => this.#askedOf(set).length > 0)
  }

  #askedOf(set: EndpointProfile): readonly LivePredicate[] {
    return this.#leftOut.size > 0 && this.#leftOut.has(namespaceOf(set)) ? NO_ATOMS : set.atoms
  }

  /** In the map ::/0 and its like contain IPv4's range as well: IPv4 gets a prefix of its own, which has nothing. */
  #coverV4(nets: Map<string, NetMove>): void {
    const around = this.#prefixes.aroundV4().some(({ identity }) => identity !== undefined)
    const shown = this.#prefixes.get(V4_KEY)?.identity !== undefined
    const { was, isNew } = nets.get(V4_KEY) ?? { was: NO_IDENTITY, isNew: !this.#hiddenV4 }
    const cover = { cidr: { addr: ANY_V4, bits: 0 }, was, now: NO_IDENTITY, isNew }
    if (around && !shown && (!this.#hiddenV4 || nets.has(V4_KEY))) nets.set(V4_KEY, { ...cover, isGone: false })
    if (this.#hiddenV4 && !around && !shown) nets.set(V4_KEY, { ...cover, isGone: true })
    this.#hiddenV4 = around && !shown
  }

  #markThing(thing: EndpointProfile): void {
    const users = this.#users.get(thing)
    for (const addr of users?.addrs ?? []) this.#dirtyEnds.add(addr)
    for (const prefix of users?.prefixes ?? []) this.#dirtyPrefixes.add(prefix.key)
  }

  #usersOf(thing: EndpointProfile): { readonly addrs: Set<Addr>; readonly prefixes: Set<Prefix> } {
    const users = this.#users.get(thing) ?? { addrs: new Set(), prefixes: new Set() }
    this.#users.set(thing, users)
    return users
  }

  #forgetUser(thing: EndpointProfile, forget: (users: { readonly addrs: Set<Addr>; readonly prefixes: Set<Prefix> }) => void): void {
    const users = this.#usersOf(thing)
    forget(users)
    if (users.addrs.size + users.prefixes.size === 0) this.#users.delete(thing)
  }
}

interface EndBefore {
  readonly addr: Addr
  readonly known: Known
  readonly was: Identity
}

/** A set of none is the cluster's, and never left out. */
function namespaceOf({ labels }: EndpointProfile): string {
  return labels.get(NAMESPACE_LABEL) ?? ''
}

function takeOut<T>(list: T[], value: T): void {
  const at = list.indexOf(value)
  if (at >= 0) list.splice(at, 1)
}
