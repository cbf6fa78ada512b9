// SPDX-License-Identifier: Apache-2.0
/** Between a source and the store, for pods alone: gives those of this node their veths, and the addresses of these.
 * They apply before the cluster has heard of them, and go before what it has heard. Layer: agent/cni. */
import type { Addr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { Notifier } from '#lib/base/async/wait.ts'
import { hasOwnAddresses, type Veth, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { PodEvent, Sink } from '#lib/store/source.ts'

/** What is known of a pod here. */
export interface Attached extends Omit<Veth, 'former'> {
  /** of the pod whose it is, where its runtime has said so */
  readonly uid?: string | undefined
  /** undefined: what the cluster says */
  readonly addresses?: readonly Addr[]
}

interface Ref {
  readonly namespace: string
  readonly name: string
}

/** Only a pod that the source has is changed: without its labels it is not known which rules apply to it. */
export class PodOverlaySink {
  /** the source may have other pods than before */
  readonly changed = new Notifier()
  readonly #node: string
  /** by name: as the source has them */
  readonly #pods = new Map<string, Pod>()
  /** those whose runtimes have said so */
  readonly #attached = new Map<string, Attached>()
  /** of those, the ones that have no veth any more */
  readonly #detached = new Set<string>()
  /** those that were looked for */
  readonly #found = new Map<string, Attached>()
  readonly #sink: Pick<Sink, 'apply'>

  /** `sink`: of the one source that has pods */
  constructor(node: string, sink: Pick<Sink, 'apply'>) {
    this.#node = node
    this.#sink = sink
  }

  /** The source's event, with the pod as this node has it: what is to go into the sink instead. */
  passOn(event: PodEvent): PodEvent {
    const ref = event.kind === 'upsert' ? event.object : event.ref
    const pod = event.kind === 'upsert' ? event.object : undefined
    if (pod?.nodeName !== this.#node) {
      this.#pods.delete(nameKey(ref))
      this.#found.delete(nameKey(ref))
      this.#detached.delete(nameKey(ref))
      return event
    }
    this.#pods.set(nameKey(ref), pod)
    return { kind: 'upsert', object: this.#withVeth(pod) }
  }

  /** A pod of this node as its source has it. */
  known(pod: Ref): Pod | undefined {
    return this.#pods.get(nameKey(pod))
  }

  /** `attached`: the pod's veth; undefined: it has none any more */
  attach(pod: Ref, attached: Attached | undefined): void {
    const key = nameKey(pod)
    if (attached !== undefined) this.#detached.delete(key)
    else if (this.#pods.has(key)) this.#detached.add(key)
    this.#set(this.#attached, pod, attached)
  }

  /** The veth that another plugin made for the pod; undefined: none was found. What a runtime has said goes before
   * it. */
  find(pod: Ref, iface: string | undefined): void {
    this.#set(this.#found, pod, iface === undefined ? undefined : { iface, ours: false })
  }

  /** Pods that may have a veth, and of which no runtime has said anything. */
  unattached(): readonly Pod[] {
    const isUnheard = (key: string): boolean => !this.#attached.has(key) && !this.#detached.has(key)
    return [...this.#pods].flatMap(([key, pod]) => (hasOwnAddresses(pod) && isUnheard(key) ? [this.#withVeth(pod)] : []))
  }

  #set(of: Map<string, Attached>, pod: Ref, attached: Attached | undefined): void {
    const key = nameKey(pod)
    if (deepEqual(of.get(key), attached)) return
    if (attached === undefined) of.delete(key)
    else of.set(key, attached)
    const known = this.#pods.get(key)
    if (known !== undefined) this.#sink.apply([{ kind: 'upsert', object: this.#withVeth(known) }])
  }

  #withVeth(pod: Pod): Pod {
    const key = nameKey(pod)
    const attached = pod.hostNetwork ? undefined : (this.#attached.get(key) ?? this.#found.get(key))
    if (attached === undefined) return pod
    const { iface, ours, uid, addresses = pod.podIPs } = attached
    const isFormer = uid !== undefined && pod.uid !== undefined && uid !== pod.uid
    // until the former pod's veth is removed, its packets are judged by what is known of the new pod
    return { ...pod, podIPs: addresses, veth: { iface, ours, ...(isFormer ? { former: true } : {}) } }
  }
}
