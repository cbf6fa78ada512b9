// SPDX-License-Identifier: Apache-2.0
/** Numbers for the names of rules, the same after every restart. Layer: agent/compile (pure). */
import { fnv1a64 } from '#lib/base/hash.ts'

/** Numbers are 1 .. 2^32-1; of two names that share a hash the later one gets another number. */
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
    let number = Number.parseInt(fnv1a64(name).slice(0, 8), 16)
    while (number === 0 || this.#names.has(number)) number = (number + 1) >>> 0
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
