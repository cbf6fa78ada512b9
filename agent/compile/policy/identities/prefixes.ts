// SPDX-License-Identifier: Apache-2.0
/** Prefixes of which something is true, and which of them an address is in. Layer: agent/compile (pure). */
import { ANY_V4, isV4, depthOf, prefixKey } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { NO_IDENTITY } from './identities.ts'
import type { Identity, LivePredicate } from './identities.ts'
import type { EndpointProfile } from './endpoint-profiles.ts'

export interface Prefix {
  readonly key: string
  readonly cidr: Cidr
  /** network sets that name it; one twice counts twice */
  readonly things: EndpointProfile[]
  /** of prefixes and services, that name it; ascending */
  atoms: LivePredicate[]
  /** identity of addresses within that no endpoint has; undefined where the prefix around says the same */
  identity: Identity | undefined
}

/** Of 0.0.0.0/0. */
const V4_DEPTH = 96

export class Prefixes {
  readonly #all = new Map<string, Prefix>()
  /** how many there are of each length, by family */
  readonly #lengths = { v4: new Map<number, number>(), v6: new Map<number, number>() }

  values(): Iterable<Prefix> {
    return this.#all.values()
  }

  get(key: string): Prefix | undefined {
    return this.#all.get(key)
  }

  /** Made if need be. */
  at(cidr: Cidr): Prefix {
    const key = prefixKey(cidr.addr, depthOf(cidr))
    const known = this.#all.get(key)
    if (known !== undefined) return known
    const prefix: Prefix = { key, cidr, things: [], atoms: [], identity: undefined }
    this.#all.set(key, prefix)
    const lengths = this.#lengthsOf(cidr.addr)
    lengths.set(depthOf(cidr), (lengths.get(depthOf(cidr)) ?? 0) + 1)
    return prefix
  }

  delete(prefix: Prefix): void {
    this.#all.delete(prefix.key)
    const lengths = this.#lengthsOf(prefix.cidr.addr)
    const depth = depthOf(prefix.cidr)
    const count = (lengths.get(depth) ?? 0) - 1
    if (count === 0) lengths.delete(depth)
    else lengths.set(depth, count)
  }

  /** Those of the address's family that contain its first `depth` bits, itself included. */
  around(addr: Addr, depth: number): readonly Prefix[] {
    const result: Prefix[] = []
    for (const length of this.#lengthsOf(addr).keys()) {
      if (length > depth) continue
      const prefix = this.#all.get(prefixKey(addr, length))
      if (prefix !== undefined) result.push(prefix)
    }
    return result
  }

  /** Those of IPv6 that contain the range in which maps have IPv4's addresses. */
  aroundV4(): readonly Prefix[] {
    return [...this.#lengths.v6.keys()].flatMap((length) => (length < V4_DEPTH ? (this.#all.get(prefixKey(ANY_V4, length)) ?? []) : []))
  }

  /** Identity of an address with these first bits that no endpoint has. */
  identityAround(addr: Addr, depth: number): Identity {
    const shown = this.around(addr, depth).flatMap(({ cidr, identity }) =>
      identity === undefined ? [] : [{ depth: depthOf(cidr), identity }],
    )
    return shown.reduce((best, one) => (one.depth > best.depth ? one : best), { depth: -1, identity: NO_IDENTITY }).identity
  }

  #lengthsOf(addr: Addr): Map<number, number> {
    return isV4(addr) ? this.#lengths.v4 : this.#lengths.v6
  }
}
