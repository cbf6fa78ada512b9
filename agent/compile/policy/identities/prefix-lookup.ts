// SPDX-License-Identifier: Apache-2.0
/** The longest prefix that an address is in, as np_nets finds it. Layer: agent/compile (pure). */
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { depthOf, prefixKey } from './prefixes.ts'

/** Families are one: IPv4 is within ::ffff:0:0/96, and that within ::/0. */
export class PrefixLookup {
  readonly #identities = new Map<string, number>()
  readonly #lengths = new Set<number>()
  #inOrder: readonly number[] | undefined

  set(cidr: Cidr, identity: number): void {
    const length = depthOf(cidr)
    this.#identities.set(prefixKey(cidr.addr, length), identity)
    this.#lengths.add(length)
    this.#inOrder = undefined
  }

  has(cidr: Cidr): boolean {
    return this.#identities.has(prefixKey(cidr.addr, depthOf(cidr)))
  }

  /** Of what is around the first `length` bits of an address; 0 where nothing is. */
  find(addr: Addr, length = 128): number {
    this.#inOrder ??= [...this.#lengths].sort((a, b) => b - a)
    for (const one of this.#inOrder) {
      const identity = one > length ? undefined : this.#identities.get(prefixKey(addr, one))
      if (identity !== undefined) return identity
    }
    return 0
  }
}
