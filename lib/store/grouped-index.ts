// SPDX-License-Identifier: Apache-2.0
/** Objects grouped by what others find them by, kept up to date with each change. Layer: lib/store. */
import { compareText } from '../base/order.ts'

interface Named {
  readonly name: string
  readonly namespace: string
}

/** Values under a group's key, each with a name of its own; sorted by name within a group. A change copies the
 * group's list: some hundreds. */
export class GroupedIndex<T extends Named> {
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
    if (from !== undefined && before !== undefined) this.#set(from, without(this.get(from), before))
    if (to === undefined || after === undefined) return
    const values = this.get(to)
    this.#set(to, values.toSpliced(placeOf(values, after), 0, after))
  }

  #set(group: string, values: readonly T[]): void {
    if (values.length === 0) this.#groups.delete(group)
    else this.#groups.set(group, values)
  }
}

function without<T extends Named>(values: readonly T[], value: T): readonly T[] {
  const at = placeOf(values, value)
  return values[at] === value ? values.toSpliced(at, 1) : values
}

/** Where it is, or is to be: before all that are not smaller. */
function placeOf(values: readonly Named[], value: Named): number {
  let [from, to] = [0, values.length]
  while (from < to) {
    const middle = (from + to) >> 1
    const found = values[middle]
    if (found !== undefined && byName(found, value) < 0) from = middle + 1
    else to = middle
  }
  return from
}

function byName(a: Named, b: Named): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name)
}
