// SPDX-License-Identifier: Apache-2.0
/** Objects grouped by what others find them by, kept up to date with each change. Layer: lib/store. */
import { compareText } from '../base/order.ts'

/** Values under a group's key, each with a name of its own; sorted by name within a group. Groups are small. */
export class Groups<T extends { readonly name: string; readonly namespace: string }> {
  readonly #groups = new Map<string, readonly T[]>()
  readonly #groupOf: (value: T) => string | undefined

  /** `groupOf` is undefined for values that belong to no group */
  constructor(groupOf: (value: T) => string | undefined) {
    this.#groupOf = groupOf
  }

  get(group: string): readonly T[] {
    return this.#groups.get(group) ?? []
  }

  groups(): Iterable<readonly [string, readonly T[]]> {
    return this.#groups
  }

  replace(before: T | undefined, after: T | undefined): void {
    const from = before === undefined ? undefined : this.#groupOf(before)
    const to = after === undefined ? undefined : this.#groupOf(after)
    if (from !== undefined && before !== undefined)
      this.#set(
        from,
        this.get(from).filter((value) => value !== before),
      )
    if (to !== undefined && after !== undefined) this.#set(to, [...this.get(to), after].sort(byName))
  }

  #set(group: string, values: readonly T[]): void {
    if (values.length === 0) this.#groups.delete(group)
    else this.#groups.set(group, values)
  }
}

function byName<T extends { readonly name: string; readonly namespace: string }>(a: T, b: T): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name)
}
