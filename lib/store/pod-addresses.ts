// SPDX-License-Identifier: Apache-2.0
/** Which pod has an address that several say they have, so that every reader of a snapshot goes by the same one.
 * Layer: lib/store. */
import type { Addr } from '../base/ip.ts'
import { deepEqual } from '../base/deep-equal.ts'
import { compareOwners, statedAddresses } from '../model/pod.ts'
import type { Pod } from '../model/pod.ts'
import { nameKey } from '../model/ref.ts'

export class PodAddresses {
  readonly #owners = new Map<Addr, Pod>()
  /** of an address that several have: those that do not get it, in their order */
  readonly #others = new Map<Addr, readonly Pod[]>()
  /** by name, as their source says them: those that do not get all that they have */
  readonly #losers = new Map<string, Pod>()

  /** `shown` is what became of the pod when this was called last. Pods that are to be shown otherwise now, this one
   * among them. */
  replace(shown: Pod | undefined, after: Pod | undefined): readonly Pod[] {
    const before = shown && (this.#losers.get(nameKey(shown)) ?? shown)
    if (deepEqual(before, after)) return []
    const touched = new Map<string, Pod>()
    for (const addr of new Set([...addressesOf(before), ...addressesOf(after)]))
      for (const other of this.#contend(addr, before, after)) touched.set(nameKey(other), other)
    if (before !== undefined) {
      touched.delete(nameKey(before))
      this.#losers.delete(nameKey(before))
    }
    if (after !== undefined) touched.set(nameKey(after), after)
    return [...touched.values()].map((pod) => this.#shownOf(pod))
  }

  /** Returns the pods that look different when another pod has the address now. */
  #contend(addr: Addr, before: Pod | undefined, after: Pod | undefined): readonly Pod[] {
    const owner = this.#owners.get(addr)
    const stay = [...(owner === undefined ? [] : [owner]), ...(this.#others.get(addr) ?? [])].filter((pod) => !isSame(pod, before))
    const isIn = after !== undefined && addressesOf(after).includes(addr)
    const [first, ...others] = isIn ? [...stay, after].sort(compareOwners) : stay
    if (first === undefined) this.#owners.delete(addr)
    else this.#owners.set(addr, first)
    if (others.length === 0) this.#others.delete(addr)
    else this.#others.set(addr, others)
    if (owner === undefined || (first !== undefined && isSame(owner, first))) return []
    return [owner, ...(first === undefined ? [] : [first]), ...others]
  }

  #shownOf(pod: Pod): Pod {
    const lost = addressesOf(pod).flatMap((addr) => {
      const owner = this.#owners.get(addr) ?? pod
      return isSame(owner, pod) ? [] : [{ addr, to: nameKey(owner) }]
    })
    if (lost.length === 0) {
      this.#losers.delete(nameKey(pod))
      return pod
    }
    this.#losers.set(nameKey(pod), pod)
    return { ...pod, podIPs: pod.podIPs.filter((addr) => lost.every((one) => one.addr !== addr)), lost }
  }
}

function addressesOf(pod: Pod | undefined): readonly Addr[] {
  return pod === undefined ? [] : statedAddresses(pod)
}

function isSame(a: Pod, b: Pod | undefined): boolean {
  return b !== undefined && a.name === b.name && a.namespace === b.namespace
}
