// SPDX-License-Identifier: Apache-2.0
/** Between a source and the store: pods of this node get the addresses that their cables have, before the cluster hears of them, and
 * whatever it has heard. Layer: agent/cni. */
import type { Addr } from '#lib/base/ip.ts'
import type { Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Sink, SourceEvent } from '#lib/store/source.ts'

/** Only a pod that the source has is changed: without its labels nobody could say which rules are for it. */
export class AttachedPods {
  readonly #node: string
  /** by name: as the source has them */
  readonly #pods = new Map<string, Pod>()
  readonly #addresses = new Map<string, readonly Addr[]>()
  #sink: Sink | undefined

  constructor(node: string) {
    this.#node = node
  }

  /** The source's own sink, with pods as they are. One source has pods. */
  over(sink: Sink): Sink {
    this.#sink = sink
    return {
      apply: (events) => {
        sink.apply(events.map((event) => this.#passOn(event)))
      },
      synced: () => {
        sink.synced()
      },
      status: (status) => {
        sink.status(status)
      },
    }
  }

  /** A pod of this node as its source has it. */
  known(pod: { readonly namespace: string; readonly name: string }): Pod | undefined {
    return this.#pods.get(nameKey(pod))
  }

  /** undefined: it has no cable any more */
  setAddresses(pod: { readonly namespace: string; readonly name: string }, addresses: readonly Addr[] | undefined): void {
    const key = nameKey(pod)
    if (addresses === undefined) this.#addresses.delete(key)
    else this.#addresses.set(key, addresses)
    const known = this.#pods.get(key)
    if (known !== undefined) this.#sink?.apply([{ kind: 'upsert', object: this.#attached(known) }])
  }

  #passOn(event: SourceEvent): SourceEvent {
    const ref = event.kind === 'upsert' ? event.object : event.ref
    if (ref.kind !== 'Pod') return event
    const pod = event.kind === 'upsert' && event.object.kind === 'Pod' ? event.object : undefined
    if (pod?.nodeName !== this.#node) {
      this.#pods.delete(nameKey(ref))
      return event
    }
    this.#pods.set(nameKey(ref), pod)
    return { kind: 'upsert', object: this.#attached(pod) }
  }

  #attached(pod: Pod): Pod {
    const addresses = pod.hostNetwork ? undefined : this.#addresses.get(nameKey(pod))
    return addresses === undefined ? pod : { ...pod, podIPs: addresses }
  }
}
