// SPDX-License-Identifier: Apache-2.0
/** Condition netplane.io/Programmed of this node's pods: all that a pod's packets need is in the kernel.
 * Layer: agent/status.
 *
 * One small write a pod, because every node hears of it: when it is programmed, or when it is not for so long that
 * this is news. */
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import { compareText, sorted } from '#lib/base/order.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { conditionEntry, findCondition, saysTheSame, type Condition, type FoundCondition } from '#lib/kube/objects/conditions.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { interfaceOf, statedAddresses, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Due, Subject } from './outbox.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** What readiness gates of pods may name. */
export const PROGRAMMED = 'netplane.io/Programmed'

const POD = { apiVersion: 'v1', kind: 'Pod' } as const
/** Less is not worth a word. */
export const LATE_MS = 10_000
/** AGAIN_MS: a programmed pod is checked again after this time. WORDS_MS: a new message for the same status waits this
 * long. */
const AGAIN_MS = 10_000
const WORDS_MS = 60_000
/** Lists all pods of the node at once: finds conditions that another client has written. */
const LIST_MS = 3_600_000

export interface PodConditionsOptions {
  readonly api: StatusApi
  readonly node: string
  /** those of this node */
  readonly pods: () => Iterable<Pod>
  readonly interfacePrefix: () => string
  /** what the kernel lacks of one; undefined: nothing */
  readonly missingOf: (place: { readonly iface: string; readonly addresses: readonly Addr[] }) => string | undefined
  /** there is something to be said of pods */
  readonly isReady: () => boolean
  readonly wall: () => number
}

/** What the server has of one. */
interface Known {
  readonly uid: string | undefined
  readonly found: FoundCondition | undefined
}

interface Write {
  readonly entry: Entry
  readonly condition: Condition
  readonly now: number
}

interface Entry {
  readonly uid: string | undefined
  readonly addresses: readonly Addr[]
  /** why the pod cannot be programmed as it is */
  readonly lost: string | undefined
  readonly iface: string
  /** from the list; undefined: to be asked for */
  known: Known | undefined
  missingSince: number | undefined
  /** not looked at before */
  lookAt: number
  /** what the server has, as far as is known */
  said: Pick<FoundCondition, 'status' | 'reason' | 'message'> | undefined
  saidAt: number
}

export class PodConditions implements Subject {
  readonly name = 'pods'
  readonly #options: PodConditionsOptions
  #entries = new Map<string, Entry>()
  /** those of the last list that nothing has been made of */
  readonly #listed = new Map<string, Known>()
  #listAt = 0

  constructor(options: PodConditionsOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    if (!this.#options.isReady()) return []
    if (now >= this.#listAt) return [{ key: '', write: (signal) => this.#list(now, signal) }]
    const before = this.#entries
    this.#entries = new Map()
    const due: Due[] = []
    for (const pod of this.#options.pods()) {
      if (statedAddresses(pod).length === 0 || pod.terminating || pod.veth?.former === true) continue
      const key = nameKey(pod)
      const entry = this.#entry(pod, before.get(key))
      this.#entries.set(key, entry)
      const condition = this.#judge(entry, now)
      if (condition !== undefined) due.push({ key, write: (signal) => this.#write(pod, { entry, condition, now }, signal) })
    }
    return due
  }

  /** A pod with other addresses is another pod, and so is one made again that has the same. */
  #entry(pod: Pod, before: Entry | undefined): Entry {
    const { uid } = pod
    const [addresses, lost] = [statedAddresses(pod), lostText(pod)]
    const prefix = this.#options.interfacePrefix()
    const iface = interfaceOf(pod, prefix)
    if (before?.uid === uid && before?.iface === iface && before.lost === lost && areSame(before.addresses, addresses)) return before
    const known = this.#listed.get(nameKey(pod))
    this.#listed.delete(nameKey(pod))
    return { uid, addresses, lost, iface, known, missingSince: undefined, lookAt: 0, said: known?.found, saidAt: -Infinity }
  }

  /** undefined: nothing new. */
  #judge(entry: Entry, now: number): Condition | undefined {
    if (now < entry.lookAt) return undefined
    const missing = entry.lost ?? this.#options.missingOf(entry)
    if (missing !== undefined) {
      entry.missingSince ??= now
      if (now - entry.missingSince < LATE_MS) return undefined
      return this.#news(entry, { status: 'False', reason: 'NotProgrammed', message: missing }, now)
    }
    entry.missingSince = undefined
    const news = this.#news(entry, { status: 'True', reason: 'Programmed', message: '' }, now)
    if (news === undefined) entry.lookAt = now + AGAIN_MS
    return news
  }

  #news(entry: Entry, condition: Condition, now: number): Condition | undefined {
    if (saysTheSame(entry.said, condition)) return undefined
    return entry.said?.status === condition.status && now < entry.saidAt + WORDS_MS ? undefined : condition
  }

  async #list(now: number, signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    const pods = await api.list(POD, { fieldSelector: `spec.nodeName=${node}`, signal, timeoutMs: TIMEOUT_MS })
    this.#listed.clear()
    // what one that is going has is not for the next of its name
    const stay = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    for (const pod of stay) this.#listed.set(nameKey({ namespace: '', ...pod.metadata }), knownOf(pod))
    // what is known of them is known from the list
    this.#entries.clear()
    this.#listAt = now + LIST_MS * (1 + Math.random())
  }

  async #write(pod: Pod, { entry, condition, now }: Write, signal: AbortSignal): Promise<void> {
    const known = entry.known ?? (await this.#lookUp(pod, entry, signal))
    // once: it gets old
    entry.known = undefined
    if (known === undefined || !(await this.#patch(pod, { known, condition }, signal))) {
      entry.lookAt = now + AGAIN_MS
      return
    }
    entry.said = condition
    entry.saidAt = now
  }

  /** undefined: it is gone, or another one by now, and the source will say so. */
  async #lookUp({ namespace, name }: Pod, { uid, addresses }: Entry, signal: AbortSignal): Promise<Known | undefined> {
    const object = await lookUp(this.#options.api, { ...POD, namespace, name }, signal)
    if (object === undefined) return undefined
    const parsed = parseObject({ ...object }, { kind: 'Pod', namespace, name })
    if (parsed.kind !== 'ok' || parsed.value.kind !== 'Pod') return undefined
    const { nodeName, podIPs, terminating } = parsed.value
    if (parsed.value.uid !== uid) return undefined
    // the cluster may not have heard of its addresses yet
    const isThat = podIPs.length === 0 || areSame(podIPs, addresses)
    return nodeName === this.#options.node && isThat && !terminating ? knownOf(object) : undefined
  }

  /** False: it is another pod of this name. */
  async #patch(
    { namespace, name }: Pod,
    { known, condition }: { readonly known: Known; readonly condition: Condition },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { uid, found } = known
    if (saysTheSame(found, condition)) return true
    const now = new Date(this.#options.wall()).toISOString()
    const patch = { metadata: { uid }, status: { conditions: [conditionEntry({ type: PROGRAMMED, condition, found, now })] } }
    const options = { type: 'strategic', subresource: 'status', signal, timeoutMs: TIMEOUT_MS } as const
    try {
      await this.#options.api.patch({ ...POD, namespace, name }, patch, options)
      return true
    } catch (thrown) {
      // the API server calls the uid of another pod invalid
      if (isRefused(thrown, 'NotFound', 'Conflict', 'Invalid')) return false
      throw thrown
    }
  }
}

/** In any order: a Pod lists the cluster's own family first, an attachment IPv4. */
function areSame(a: readonly Addr[], b: readonly Addr[]): boolean {
  return deepEqual(sorted(a, compareText), sorted(b, compareText))
}

function lostText({ lost = [] }: Pod): string | undefined {
  return lost.length === 0 ? undefined : lost.map(({ addr, to }) => `${formatAddr(addr)} is that of pod ${to}`).join(', ')
}

function knownOf(pod: ApiObject): Known {
  return { uid: pod.metadata.uid, found: findCondition(pod, PROGRAMMED) }
}
