// SPDX-License-Identifier: Apache-2.0
/** What slices say of an address of which several speak. Layer: agent/compile (pure). */
import type { Endpoint, EndpointState } from '#lib/model/endpoint-slice.ts'

/** What one slice says of an endpoint. */
export interface Stated extends Pick<Endpoint, 'pod'> {
  /** of the slice */
  readonly resourceVersion: number | undefined
  /** as the slice has it */
  readonly said: EndpointState
}

/** One for each key. Of the same pod what was written last counts: while an endpoint moves from one slice to another
 * both may have it. Slices of manifests do not say when they were written, and count as older; between two of them the
 * better state is taken for the newer. An address of several pods is that of the one in the best state, for the others
 * are on their way out of it; of equal ones that which was written last. */
export class StatedByKey<K, S extends Stated> {
  /** by key: one of each pod */
  readonly #stated = new Map<K, S[]>()

  add(key: K, one: S): void {
    const all = this.#stated.get(key)
    if (all === undefined) {
      this.#stated.set(key, [one])
      return
    }
    const at = all.findIndex(({ pod }) => pod === one.pod)
    const known = all[at]
    if (known === undefined) all.push(one)
    else if ((isLater(one, known) || isBetter(one, known)) > 0) all[at] = one
  }

  *[Symbol.iterator](): Iterator<S> {
    for (const all of this.#stated.values()) yield all.reduce((best, one) => ((isBetter(one, best) || isLater(one, best)) > 0 ? one : best))
  }
}

/** Positive: yes; negative: the other is. */
function isLater(one: Stated, other: Stated): number {
  return (one.resourceVersion ?? 0) - (other.resourceVersion ?? 0)
}

function isBetter(one: Stated, other: Stated): number {
  return quality(one.said) - quality(other.said)
}

/** Ready before serving, before what serves until it ends. */
function quality({ ready, serving, terminating }: EndpointState): number {
  if (ready) return 3
  if (!serving) return 0
  return terminating ? 1 : 2
}
