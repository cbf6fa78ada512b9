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
  /** by key: of the pod that was told first */
  readonly #first = new Map<K, S>()
  /** by key, by pod: of keys that several pods have */
  readonly #several = new Map<K, Map<number, S>>()

  add(key: K, one: S): void {
    const first = this.#first.get(key)
    const several = this.#several.get(key)
    if (first === undefined) {
      this.#first.set(key, one)
      return
    }
    if (several === undefined && first.pod === one.pod) {
      if (isNewer(one, first)) this.#first.set(key, one)
      return
    }
    const all = several ?? new Map([[first.pod, first]])
    this.#several.set(key, all)
    const known = all.get(one.pod)
    if (known === undefined || isNewer(one, known)) all.set(one.pod, one)
  }

  *[Symbol.iterator](): Iterator<S> {
    for (const [key, first] of this.#first) {
      const several = this.#several.get(key)
      yield several === undefined ? first : Iterator.from(several.values()).reduce((best, one) => (isAhead(one, best) ? one : best))
    }
  }
}

/** Of the same pod. */
function isNewer(one: Stated, known: Stated): boolean {
  return (isLater(one, known) || isBetter(one, known)) > 0
}

/** Of two pods. */
function isAhead(one: Stated, best: Stated): boolean {
  return (isBetter(one, best) || isLater(one, best)) > 0
}

/** Positive: yes; negative: the other is. */
function isLater(one: Stated, other: Stated): number {
  return (one.resourceVersion ?? 0) - (other.resourceVersion ?? 0)
}

function isBetter(one: Stated, other: Stated): number {
  return quality(one.said) - quality(other.said)
}

/** Ready before serving, before what serves until it ends. Where a service has endpoints count as ready in any case
 * (`publishNotReadyAddresses`), one that stays before one that ends. */
function quality({ ready, serving, terminating }: EndpointState): number {
  if (ready) return 3 + (terminating ? 0 : 2) + (serving ? 1 : 0)
  if (!serving) return 0
  return terminating ? 1 : 2
}
