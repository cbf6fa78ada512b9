// SPDX-License-Identifier: Apache-2.0
/** Values by prefix, and that of the longest prefix that an address is in. Layer: lib/base. */
import { depthOf, prefixKey, type Addr, type Cidr } from './ip.ts'

/** Families are one: IPv4 is within ::ffff:0:0/96, and that within ::/0. */
export class PrefixMap<T> {
  readonly #values = new Map<string, T>()
  readonly #lengths = new Set<number>()
  #inOrder: readonly number[] | undefined

  get(cidr: Cidr): T | undefined {
    return this.#values.get(keyOf(cidr))
  }

  set(cidr: Cidr, value: T): void {
    this.#values.set(keyOf(cidr), value)
    this.#lengths.add(depthOf(cidr))
    this.#inOrder = undefined
  }

  /** Of what is around the first `length` bits of an address: costs in proportion to the lengths there are. */
  find(addr: Addr, length = 128): T | undefined {
    this.#inOrder ??= [...this.#lengths].sort((a, b) => b - a)
    for (const one of this.#inOrder) {
      const value = one > length ? undefined : this.#values.get(prefixKey(addr, one))
      if (value !== undefined) return value
    }
    return undefined
  }
}

function keyOf(cidr: Cidr): string {
  return prefixKey(cidr.addr, depthOf(cidr))
}
