// SPDX-License-Identifier: Apache-2.0
/** In the place of kubelet and its runtime: sees to it that its node has the sandboxes of the pods that the API
 * server has for it. Layer: soak. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { everyMs, systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { Lab } from '../../lab/lab.ts'
import { SoakError } from '../errors.ts'
import { addressesIn, callShim, NETNS_DIR, type Answer, type Call, type Sandbox } from './shim.ts'
import type { Cut, Visitor } from './steps.ts'

const LOOK_MS = 200
/** After what was refused. */
const AGAIN_MS = 1000
const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default' } as const

export interface KubeletOptions {
  readonly lab: Lab
  readonly node: string
  /** as this node's kubelet */
  readonly client: ApiClient
  /** how a pod fares that comes and goes */
  readonly visitor: (pod: ApiObject) => Visitor | undefined
  readonly killAgent: (node: string) => void
  /** false: nothing is cut for now */
  readonly mayCut: () => boolean
  /** a sandbox has its network */
  readonly onReady: (node: string, made: Made) => void
}

/** A sandbox, and what is known of its network. */
export interface Made extends Sandbox {
  /** before ADD has succeeded, and from the first DEL on, its network is not known */
  readonly state: 'unknown' | 'ready'
  /** of an ADD that has succeeded */
  readonly result: unknown
  readonly addresses: readonly string[]
}

/** One pod of the node, by uid: another of its name is another. */
interface Kept {
  pod: ApiObject
  /** it is to run */
  wanted: boolean
  busy: boolean
  /** not to be tried again before, in ms of the clock */
  rests: number
  /** the API server has its addresses */
  told: boolean
  count: number
  adds: number
  dels: number
  made: readonly Made[]
}

export class Kubelet {
  readonly #options: KubeletOptions
  readonly #kept = new Map<string, Kept>()
  readonly #counts = new Map<string, number>()
  #running = 0
  #paused = false
  /** the API server has answered the last time */
  #fresh = false
  #last = ''

  constructor(options: KubeletOptions) {
    this.#options = options
  }

  /** Looks again and again until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await everyMs(systemClock, { ms: LOOK_MS, signal, run: () => this.#look() })
  }

  get made(): readonly Made[] {
    return [...this.#kept.values()].flatMap(({ made }) => made)
  }

  /** How often each kind of call was made, and was cut. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** What is still to be done, a line each; empty: all pods are as the API server wants them. */
  unfinished(): string[] {
    const { node } = this.#options
    const open = [...this.#kept.values()].filter((kept) => kept.busy || !isDone(kept))
    const pods = open.map(({ pod, wanted, made }) => `${node}: ${pod.metadata.name} ${wanted ? 'comes' : 'goes'}, ${made.length} sandboxes`)
    const why = this.#last === '' ? [] : [`${node}: last failure: ${this.#last}`]
    return this.#fresh ? (pods.length === 0 ? [] : [...pods, ...why]) : [`${node}: cannot ask the API server`, ...why]
  }

  /** The runtime's garbage collection, while nothing else is done: what it does not know is no pod's. */
  async collect(): Promise<Answer> {
    this.#paused = true
    try {
      while (this.#running > 0) await systemClock.sleep(10, new AbortController().signal)
      return await this.#call({ command: 'GC', valid: this.made })
    } finally {
      this.#paused = false
    }
  }

  /** Of all that are ready, those that the plugin finds changed; a line each. */
  async check(): Promise<string[]> {
    const { node } = this.#options
    const lines: string[] = []
    for (const sandbox of this.made.filter(({ state }) => state === 'ready')) {
      const answer = await this.#call({ command: 'CHECK', sandbox, result: sandbox.result })
      if (answer.kind !== 'done') lines.push(`${node}: CHECK of ${sandbox.pod}: ${JSON.stringify(answer)}`)
    }
    return lines
  }

  async #look(): Promise<void> {
    const { client, node } = this.#options
    try {
      const pods = await client.list(POD, { fieldSelector: `spec.nodeName=${node}`, timeoutMs: 5000 })
      this.#note(pods)
      this.#fresh = true
    } catch (thrown) {
      this.#fresh = false
      this.#fail(thrown)
    }
    for (const kept of this.#kept.values()) if (this.#isDue(kept)) void this.#turn(kept)
  }

  #isDue(kept: Kept): boolean {
    return !kept.busy && !this.#paused && !isDone(kept) && systemClock.now() >= kept.rests
  }

  #note(pods: readonly ApiObject[]): void {
    const uids = new Set(pods.map((pod) => pod.metadata.uid ?? ''))
    for (const pod of pods) {
      const wanted = pod.metadata.deletionTimestamp === undefined
      const kept = this.#kept.get(pod.metadata.uid ?? '')
      if (kept !== undefined) Object.assign(kept, { pod, wanted })
      else this.#kept.set(pod.metadata.uid ?? '', { pod, wanted, busy: false, rests: 0, told: false, count: 0, adds: 0, dels: 0, made: [] })
    }
    for (const [uid, kept] of this.#kept) {
      if (uids.has(uid)) continue
      kept.wanted = false
      if (kept.made.length === 0 && !kept.busy) this.#kept.delete(uid)
    }
  }

  /** One after the other of a pod, several pods at once. What fails is tried again with the next look. */
  async #turn(kept: Kept): Promise<void> {
    kept.busy = true
    this.#running++
    try {
      await this.#sync(kept)
    } catch (thrown) {
      kept.rests = systemClock.now() + AGAIN_MS
      this.#fail(thrown)
    } finally {
      this.#running--
      kept.busy = false
    }
  }

  async #sync(kept: Kept): Promise<void> {
    const how = this.#options.visitor(kept.pod)?.then
    if (!kept.wanted) return await this.#end(kept)
    const [last] = kept.made.slice(-1)
    if (last?.state !== 'ready') {
      if (last !== undefined && how === 'again') return await this.#add(kept, last)
      if (how !== 'another-first') await this.#takeAway(kept, kept.made)
      return await this.#add(kept, await this.#sandbox(kept))
    }
    await this.#takeAway(kept, kept.made.slice(0, -1))
    if (!kept.told) await this.#tell(kept, last)
  }

  async #sandbox({ pod, count }: Kept): Promise<Made> {
    const { name, namespace = '', uid = '' } = pod.metadata
    const containerId = `${uid.slice(0, 13)}-${count}`
    await this.#ip('add', containerId)
    return { containerId, namespace, pod: name, state: 'unknown', result: undefined, addresses: [] }
  }

  async #add(kept: Kept, sandbox: Made): Promise<void> {
    const { visitor, node, onReady } = this.#options
    this.#put(kept, sandbox)
    const answer = await this.#call({ command: 'ADD', sandbox, ...this.#cut(visitor(kept.pod)?.adds[kept.adds++]) })
    if (answer.kind === 'refused') throw new SoakError(`ADD of ${sandbox.pod}`, [answer.message])
    if (answer.kind === 'cut') return
    const ready: Made = { ...sandbox, state: 'ready', result: answer.result, addresses: addressesIn(answer.result) }
    this.#put(kept, ready)
    onReady(node, ready)
  }

  /** In the place of the sandbox with this id, or as the last. */
  #put(kept: Kept, made: Made): void {
    const at = kept.made.findIndex(({ containerId }) => containerId === made.containerId)
    if (at < 0) kept.count++
    kept.made = at < 0 ? [...kept.made, made] : kept.made.with(at, made)
  }

  async #end(kept: Kept): Promise<void> {
    const { client } = this.#options
    await this.#takeAway(kept, kept.made)
    const { uid = '', name, deletionTimestamp } = kept.pod.metadata
    if (kept.made.length > 0 || deletionTimestamp === undefined) return
    await client.delete({ ...POD, name }, { gracePeriodSeconds: 0, preconditions: { uid } }).catch(unless('NotFound', 'Conflict'))
  }

  async #takeAway(kept: Kept, which: readonly Made[]): Promise<void> {
    const visitor = this.#options.visitor(kept.pod)
    for (const { containerId } of which) {
      const sandbox = kept.made.find((one) => one.containerId === containerId)
      if (sandbox === undefined) continue
      this.#put(kept, { ...sandbox, state: 'unknown' })
      if (visitor?.netnsFirst === true) await this.#ip('delete', containerId)
      const answer = await this.#call({ command: 'DEL', sandbox, ...this.#cut(visitor?.dels[kept.dels++]) })
      if (answer.kind === 'refused') throw new SoakError(`DEL of ${sandbox.pod}`, [answer.message])
      if (answer.kind === 'cut') return
      await this.#ip('delete', containerId)
      kept.made = kept.made.filter((one) => one.containerId !== containerId)
    }
  }

  async #tell(kept: Kept, { addresses }: Made): Promise<void> {
    const { client } = this.#options
    const { name, uid } = kept.pod.metadata
    const podIPs = addresses.map((ip) => ({ ip }))
    const patch = { metadata: { uid }, status: { phase: 'Running', podIP: addresses[0], podIPs } }
    await client.patch({ ...POD, name }, patch, { type: 'strategic', subresource: 'status' }).catch(unless('NotFound', 'Conflict'))
    kept.told = true
  }

  async #call(call: Call): Promise<Answer> {
    const answer = await callShim(this.#options.lab, this.#options.node, call)
    const { command } = call
    for (const key of [command, ...(answer.kind === 'cut' ? [`${command} cut`] : [])])
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    return answer
  }

  #cut(cut: Cut | undefined): Pick<Call, 'cutMs' | 'onCut'> {
    const { mayCut, killAgent, node } = this.#options
    if (cut === undefined || !mayCut()) return {}
    return cut.who === 'shim' ? { cutMs: cut.afterMs } : { cutMs: cut.afterMs, onCut: () => killAgent(node) }
  }

  async #ip(verb: 'add' | 'delete', containerId: string): Promise<void> {
    const { lab, node } = this.#options
    const script = verb === 'add' ? `ip netns add ${containerId}` : `[ ! -e ${NETNS_DIR}/${containerId} ] || ip netns delete ${containerId}`
    await lab.mustRun(`node/${node}`, ['sh', '-ec', script])
  }

  #fail(thrown: unknown): void {
    this.#last = thrown instanceof SoakError ? `${thrown.message}: ${thrown.faults.join()}` : errorText(thrown)
  }
}

/** It runs in one sandbox and the API server knows its addresses; or it is to go, and is the API server's alone. */
function isDone({ wanted, made, told, pod }: Kept): boolean {
  if (wanted) return made.length === 1 && made[0]?.state === 'ready' && told
  return made.length === 0 && pod.metadata.deletionTimestamp === undefined
}

function unless(...reasons: readonly string[]): (thrown: unknown) => void {
  return (thrown) => {
    if (!isRefused(thrown, ...reasons)) throw thrown
  }
}
