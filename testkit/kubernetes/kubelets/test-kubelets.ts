// SPDX-License-Identifier: Apache-2.0
/** Nodes without machines: what their kubelets would tell the API server, so that real controllers and a scheduler have
 * nodes to work with. Layer: testkit.
 *
 * A pod that is bound to one of them is Ready a while later, or fails as its node is told to; one that is deleted is
 * gone. Nothing runs. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused, isWrongRequest } from '#lib/api/errors.ts'
import { Informer } from '#lib/api/informer.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { textAt } from '../../../lab/raw.ts'
import { nodeLease, nodeObject, nodeReady, podStatus, type PodFate } from './fates.ts'

export interface TestKubeletsOptions {
  readonly client: ApiClient
  /** from a pod's binding to its first status */
  readonly startMs: number
  /** so often each writes its Node, of which nothing is new but the time; undefined: never */
  readonly heartbeatMs?: number
  /** what the init containers of a pod say; without it, and undefined: of a preflight, that it has found nothing */
  readonly says?: (pod: ApiObject) => Promise<string | undefined>
  /** called after each change of a pod on these nodes */
  readonly onPods?: (pods: readonly ApiObject[]) => void
}

const RENEW_MS = 3000
/** of the nodes' Leases: one after the other, fifty may take longer than a node may be silent */
const AT_ONCE = 16
const AGAIN_MS = 500
const LEASE_SECONDS = 40

export class TestKubelets implements AsyncDisposable {
  readonly #options: TestKubeletsOptions
  readonly #pods: Informer
  readonly #nodes = new Set<string>()
  readonly #fates = new Map<string, PodFate>()
  /** pods that fates are not for, by their uid */
  #kept: ReadonlySet<string> = new Set()
  readonly #silent = new Set<string>()
  /** what was said last of a pod, by its uid */
  readonly #told = new Map<string, PodFate | 'gone'>()
  /** uids of those of which something is being said: two requests could overtake each other */
  readonly #telling = new Set<string>()
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>
  #failure: unknown

  constructor(options: TestKubeletsOptions) {
    this.#options = options
    this.#pods = new Informer({
      ...{ client: options.client, clock: systemClock, collection: { apiVersion: 'v1', kind: 'Pod' } },
      onChange: () => {
        this.#look()
      },
      onFailure: () => undefined,
    })
    this.#running = Promise.all([this.#pods.run(this.#stop.signal), this.#renew(), this.#beat()])
  }

  /** Those on these nodes. */
  get pods(): readonly ApiObject[] {
    return [...this.#pods.objects.values()].filter((pod) => this.#nodes.has(nodeOf(pod)))
  }

  /** Nodes of these names, Ready. `room` false: the scheduler finds no place there. */
  async add(names: readonly string[], room = true): Promise<void> {
    for (const name of names) {
      this.#nodes.add(name)
      await this.#options.client.apply(nodeLease(name, LEASE_SECONDS))
      await this.#options.client.create(nodeObject(name, room))
    }
  }

  /** Of the pods of these nodes from now on; `which` new: those that are there stay as they are. */
  setFate(nodes: readonly string[], fate: PodFate, which: 'all' | 'new' = 'all'): void {
    const kept = which === 'new' ? this.pods.map(({ metadata }) => metadata.uid ?? '') : []
    this.#kept = new Set(kept)
    for (const node of nodes) this.#fates.set(node, fate)
    this.#look()
  }

  /** The node is gone without a word: controllers miss it a while later, and say that its pods are not ready. */
  silence(node: string): void {
    this.#silent.add(node)
  }

  /** Its kubelet says that it is not ready, and controllers that its pods are not. */
  async hold(node: string): Promise<void> {
    await this.#say(node, { ...nodeReady(), status: 'False', reason: 'KubeletNotReady', message: 'held' })
  }

  /** It is back, with its pods. */
  async wake(node: string): Promise<void> {
    this.#silent.delete(node)
    await this.#options.client.apply(nodeLease(node, LEASE_SECONDS))
    await this.#say(node, nodeReady())
    for (const pod of this.pods) if (nodeOf(pod) === node) this.#told.delete(pod.metadata.uid ?? '')
    this.#look()
  }

  /** Throws what a kubelet could not tell. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    if (this.#failure !== undefined) throw new Error(`test kubelets: ${errorText(this.#failure)}`, { cause: this.#failure })
  }

  async #say(node: string, ready: object): Promise<void> {
    const named = { apiVersion: 'v1', kind: 'Node', name: node }
    await this.#options.client.patch(named, { status: { conditions: [ready] } }, { type: 'strategic', subresource: 'status' })
  }

  #look(): void {
    this.#options.onPods?.(this.pods)
    for (const pod of this.pods) {
      const { uid = '' } = pod.metadata
      if (this.#silent.has(nodeOf(pod)) || this.#telling.has(uid) || this.#told.get(uid) === this.#fateOf(pod)) continue
      this.#telling.add(uid)
      void this.#tell(pod).finally(() => {
        this.#telling.delete(uid)
        if (!this.#stop.signal.aborted) this.#look()
      })
    }
  }

  #fateOf(pod: ApiObject): PodFate | 'gone' {
    const { uid = '', deletionTimestamp } = pod.metadata
    if (deletionTimestamp !== undefined) return 'gone'
    const told = this.#told.get(uid)
    if (told !== undefined && this.#kept.has(uid)) return told
    return this.#fates.get(nodeOf(pod)) ?? 'ready'
  }

  async #tell(pod: ApiObject): Promise<void> {
    const { client, startMs, says } = this.#options
    const { signal } = this.#stop
    const uid = pod.metadata.uid ?? ''
    const isNew = !this.#told.has(uid)
    try {
      if (isNew && this.#fateOf(pod) !== 'gone') await systemClock.sleep(startMs, signal)
      const fate = this.#fateOf(pod)
      if (fate === 'gone') await client.delete(namedOf(pod), { gracePeriodSeconds: 0, preconditions: { uid } })
      else {
        const status = podStatus(pod, fate, await says?.(pod))
        await client.patch(namedOf(pod), { metadata: { uid }, status }, { type: 'merge', subresource: 'status' })
      }
      this.#told.set(uid, fate)
    } catch (thrown) {
      if (isRefused(thrown, 'NotFound')) this.#told.set(uid, this.#fateOf(pod))
      else if (isWrongRequest(thrown) && !isRefused(thrown, 'Conflict')) this.#failure ??= thrown
      // the API server is away, or another client was faster
      await systemClock.sleep(AGAIN_MS, signal).catch(() => undefined)
    }
  }

  async #renew(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await mapLimited([...this.#nodes], AT_ONCE, async (node) => {
        if (!this.#silent.has(node)) await this.#options.client.apply(nodeLease(node, LEASE_SECONDS)).catch(() => undefined)
      })
      await systemClock.sleep(RENEW_MS, signal).catch(() => undefined)
    }
  }

  /** One after the other, over the whole time. */
  async #beat(): Promise<void> {
    const { signal } = this.#stop
    const { client, heartbeatMs } = this.#options
    if (heartbeatMs === undefined) return
    let turn = 0
    while (!signal.aborted) {
      const nodes = [...this.#nodes]
      await systemClock.sleep(heartbeatMs / Math.max(1, nodes.length), signal).catch(() => undefined)
      const name = nodes[turn++ % Math.max(1, nodes.length)]
      if (name === undefined || this.#silent.has(name)) continue
      const status = { conditions: [{ type: 'Ready', lastHeartbeatTime: new Date().toISOString() }] }
      const named = { apiVersion: 'v1', kind: 'Node', name }
      await client.patch(named, { status }, { type: 'strategic', subresource: 'status', signal }).catch(() => undefined)
    }
  }
}

function nodeOf(pod: ApiObject): string {
  return textAt(pod, 'spec.nodeName') ?? ''
}
