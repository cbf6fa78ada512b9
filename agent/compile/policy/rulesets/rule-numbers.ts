// SPDX-License-Identifier: Apache-2.0
/** Numbers for the names of rules, the same after every restart. Layer: agent/compile (pure). */
import { RULE_OF_CLUSTER } from '#lib/base/bpf-constants.ts'
import { fnv1a64 } from '#lib/base/hash.ts'

const TWO_32 = 2 ** 32
/** The first of those. */
const OF_CLUSTER = RULE_OF_CLUSTER * 2 ** 24

export function isOfCluster(number: number): boolean {
  return number >= OF_CLUSTER
}

/** Numbers are 1 .. 2^32-1; of two names that share a hash the later one gets another number. Rules of
 * ClusterNetworkPolicies are known by the highest byte of theirs: they hold for what a pod sends to itself by a service
 * as well. */
export class RuleNumbers {
  readonly #byName = new Map<string, { readonly number: number; users: number }>()
  readonly #names = new Map<number, string>()

  get names(): ReadonlyMap<number, string> {
    return this.#names
  }

  take(name: string): number {
    const known = this.#byName.get(name)
    if (known !== undefined) {
      known.users++
      return known.number
    }
    const first = name.startsWith('ClusterNetworkPolicy/') ? OF_CLUSTER : 0
    const count = first === 0 ? OF_CLUSTER : TWO_32 - OF_CLUSTER
    let number = first + (Number.parseInt(fnv1a64(name).slice(0, 8), 16) % count)
    while (number === 0 || this.#names.has(number)) number = first + ((number - first + 1) % count)
    this.#byName.set(name, { number, users: 1 })
    this.#names.set(number, name)
    return number
  }

  release(name: string): void {
    const known = this.#byName.get(name)
    if (known === undefined || --known.users > 0) return
    this.#byName.delete(name)
    this.#names.delete(known.number)
  }

  /** The name behind a number that programs have recorded. */
  nameOf(number: number): string | undefined {
    return this.#names.get(number)
  }
}
