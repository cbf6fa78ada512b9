// SPDX-License-Identifier: Apache-2.0
/** Agents without programs: each follows its FelixConfigurations a while after they have changed, and says in its
 * NodeNetwork what a real one would. Layer: testkit. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { Informer } from '#lib/api/informer.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { Mode } from '#lib/kube/objects/node-network-status.ts'
import { at, textAt } from '../../../lab/raw.ts'

export interface TestAgentsOptions {
  readonly client: ApiClient
  /** nodes whose agents run */
  readonly nodes: () => readonly string[]
  /** a kube-proxy is to run on every node */
  readonly isProxyExpected: () => boolean
  /** at most, from a change of a FelixConfiguration to the mode, and from that to the proof */
  readonly delayMs: number
  /** how much of it: at least 0, less than 1 */
  readonly random: () => number
  readonly onMode?: (change: Change) => void
  /** called once for each node that is in Standard mode while no kube-proxy is to run */
  readonly onUnserved?: (node: string) => void
}

/** A node that changed its mode. */
export interface Change {
  readonly node: string
  readonly mode: Mode
}

interface Agent {
  mode: Mode
  since: string
  proof: 'Running' | 'Proven' | 'Failed'
  configurations: Readonly<Record<string, number>>
  at: string
  isBusy: boolean
}

const LOOK_MS = 20
const NETWORK = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork' } as const

export class TestAgents implements AsyncDisposable {
  readonly #options: TestAgentsOptions
  readonly #configurations: Informer
  readonly #proxies: Informer
  readonly #agents = new Map<string, Agent>()
  readonly #told = new Map<string, string>()
  /** node ports that an agent says have answered it, by its node */
  readonly nodePorts = new Map<string, readonly string[]>()
  /** nodes where services do not answer in a mode */
  readonly #broken = new Map<string, Mode>()
  /** in their order */
  readonly changes: Change[] = []
  /** nodes that went to Standard mode, or were in it, while no kube-proxy was to run there */
  readonly unserved = new Set<string>()
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>
  #failure: unknown

  constructor(options: TestAgentsOptions) {
    this.#options = options
    const informer = (apiVersion: string, kind: string, namespace?: string): Informer =>
      new Informer({
        ...{ client: options.client, clock: systemClock, onChange: () => undefined, onFailure: () => undefined },
        collection: { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) },
      })
    this.#configurations = informer('netplane.io/v3', 'FelixConfiguration')
    this.#proxies = informer('v1', 'Pod', 'kube-system')
    const { signal } = this.#stop
    this.#running = Promise.all([this.#configurations.run(signal), this.#proxies.run(signal), this.#run()])
  }

  /** Services do not answer there in this mode; undefined: they do. */
  break(node: string, mode: Mode | undefined): void {
    if (mode === undefined) this.#broken.delete(node)
    else this.#broken.set(node, mode)
    const agent = this.#agents.get(node)
    if (agent?.proof === 'Failed') agent.proof = 'Running'
  }

  /** The agent's NodeNetwork is gone, and it says all anew. */
  tellAnew(node: string): void {
    this.#told.delete(node)
  }

  /** Throws what an agent could not tell. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    if (this.#failure !== undefined) throw new Error(`test agents: ${errorText(this.#failure)}`, { cause: this.#failure })
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await systemClock.sleep(LOOK_MS, signal).catch(() => undefined)
      if (!this.#configurations.synced) continue
      for (const node of this.#options.nodes())
        await this.#look(node).catch((thrown: unknown) => {
          if (!signal.aborted) this.#failure ??= thrown
        })
    }
  }

  async #look(node: string): Promise<void> {
    const agent = this.#agents.get(node) ?? this.#started(node)
    if (!agent.isBusy) this.#follow(node, agent)
    if (agent.mode === 'Standard' && !this.#options.isProxyExpected()) this.#missProxy(node)
    await this.#tell(node, agent)
  }

  #started(node: string): Agent {
    const now = new Date().toISOString()
    const { mode, configurations } = this.#configured(node)
    const agent: Agent = { mode, since: now, proof: 'Running', configurations, at: now, isBusy: false }
    this.#agents.set(node, agent)
    this.#note(node, mode)
    return agent
  }

  #follow(node: string, agent: Agent): void {
    const { mode, configurations } = this.#configured(node)
    const isSame = JSON.stringify(configurations) === JSON.stringify(agent.configurations)
    if (isSame && agent.proof !== 'Running') return
    agent.isBusy = true
    void this.#later(() => {
      agent.isBusy = false
      const now = new Date().toISOString()
      if (mode !== agent.mode) {
        Object.assign(agent, { mode, since: now, proof: 'Running', at: now })
        this.#note(node, mode)
      } else if (agent.proof === 'Running') Object.assign(agent, { proof: this.#broken.get(node) === mode ? 'Failed' : 'Proven', at: now })
      agent.configurations = configurations
    })
  }

  #note(node: string, mode: Mode): void {
    this.changes.push({ node, mode })
    this.#options.onMode?.({ node, mode })
  }

  #missProxy(node: string): void {
    if (!this.unserved.has(node)) this.#options.onUnserved?.(node)
    this.unserved.add(node)
  }

  async #later(act: () => void): Promise<void> {
    await systemClock.sleep(this.#options.random() * this.#options.delayMs, this.#stop.signal).catch(() => undefined)
    act()
  }

  #configured(node: string): Pick<Agent, 'mode' | 'configurations'> {
    const found = ['default', `node.${node}`].flatMap((name) => this.#configurations.objects.get(`/${name}`) ?? [])
    const said = found.map((one) => at(one, 'spec.bpfEnabled')).filter((one) => one !== undefined)
    const generations = found.map(({ metadata }) => [metadata.name, metadata.generation ?? 0])
    return { mode: said.at(-1) === false ? 'Standard' : 'BPF', configurations: Object.fromEntries(generations) as Agent['configurations'] }
  }

  async #tell(node: string, agent: Agent): Promise<void> {
    const { client } = this.#options
    const hasProxy = [...this.#proxies.objects.values()].some((pod) => isProxyOf(pod, node))
    const { mode, since, proof, configurations } = agent
    const failed = proof === 'Failed' ? ['Service default/kubernetes, TCP 10.96.0.1:443: no answer'] : []
    const status = {
      version: 'v3.31.5',
      dataplane: { mode, since, configurations },
      proof: { mode, state: proof, asked: 1, answered: 1 - failed.length, failed, nodePorts: this.nodePorts.get(node) ?? [], at: agent.at },
      kubeProxy: hasProxy ? 'Present' : 'Absent',
    }
    const text = JSON.stringify(status)
    if (this.#told.get(node) === text) return
    const named = { ...NETWORK, name: node }
    const { signal } = this.#stop
    const found = await client.get(named, { signal }).catch((thrown: unknown) => {
      if (!isRefused(thrown, 'NotFound')) throw thrown
      return undefined
    })
    const object = found ?? (await client.create(asApiObject({ ...NETWORK, metadata: { name: node }, spec: {} }), { signal }))
    await client.update({ ...object, status }, { subresource: 'status', signal })
    this.#told.set(node, text)
  }
}

function isProxyOf(pod: ApiObject, node: string): boolean {
  return pod.metadata.labels?.['k8s-app'] === 'kube-proxy' && textAt(pod, 'spec.nodeName') === node
}
