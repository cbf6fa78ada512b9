// SPDX-License-Identifier: Apache-2.0
/** From what the cluster says to what it should have, again whenever something changes. Layer: operator. */
import { isObject } from '#lib/base/object.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import type { Computed } from '#lib/render/computed.ts'
import { ENDPOINT_MAP, NODE } from '#lib/render/input.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'
import { OwnedObjects, textOf, troubleOf, type Trouble } from '../objects/owned-objects.ts'
import { poolsToMake } from '../objects/pools.ts'
import { statusConditions } from '../status/conditions.ts'
import { installationStatus, saysStatus } from '../status/installation-status.ts'
import { namesText } from '../status/names-text.ts'
import { rolloutState, type Cause, type ComponentState } from '../status/rollout.ts'
import { StatusWriter } from '../status/status-writer.ts'
import type { ClusterView } from './cluster-view.ts'
import { desiredOf, providerOf, type Desired } from './desired.ts'
import { endpointInUse, readEndpoint } from './endpoint.ts'
import type { Lease } from './lease.ts'
import type { OperatorOptions } from './options.ts'

export interface PassLoopOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  readonly view: ClusterView
  readonly lease: Lease
  readonly options: OperatorOptions
  readonly version: string
}

/** Changes come in bursts; one pass takes all that came within this time. */
const GATHER_MS = 50
/** After a pass in which something could not be written. */
const AGAIN_MS = 2000

export class PassLoop {
  readonly #of: PassLoopOptions
  readonly #owned: OwnedObjects
  readonly #statuses: StatusWriter
  #wake: () => void = () => undefined
  #isDue = true
  #serverVersion: string | undefined
  #cancel: () => void = () => undefined
  #poolTroubles: readonly Trouble[] = []
  #held = false

  constructor(of: PassLoopOptions) {
    this.#of = of
    this.#owned = new OwnedObjects({ client: of.client, log: of.log })
    this.#statuses = new StatusWriter({ client: of.client, log: of.log, now: () => this.#now() })
  }

  /** "2026-11-26T08:00:00Z" */
  #now(): string {
    return `${new Date(this.#of.clock.wall()).toISOString().slice(0, 19)}Z`
  }

  /** Something may be otherwise than it was. */
  wake(): void {
    this.#isDue = true
    this.#wake()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, view, lease, health } = this.#of
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await this.#due(signal)
      await clock.sleep(GATHER_MS, signal).catch(() => undefined)
      this.#isDue = false
      if (isOver() || !view.synced) continue
      health.pass('synced')
      // another process may have acted meanwhile
      if (lease.isHeld && !this.#held) this.#owned.forget()
      this.#held = lease.isHeld
      if (!this.#held) continue
      try {
        await this.#pass(signal)
      } catch (thrown) {
        if (isOver()) break
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        log.warn({ reason: errorText(thrown) }, 'pass.failed')
        this.#again()
      }
    }
    this.#cancel()
  }

  #due(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.#wake = end
      signal.addEventListener('abort', end)
      if (this.#isDue || signal.aborted) end()
    })
  }

  #again(): void {
    this.#cancel()
    this.#cancel = this.#of.clock.after(AGAIN_MS, () => {
      this.wake()
    })
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { client, view } = this.#of
    const { installation } = view
    if (installation === undefined || installation.metadata.deletionTimestamp !== undefined) {
      await this.#statuses.write(new Map(), { generation: 0, found: view.statuses.objects, signal })
      return
    }
    const present = new Map([...view.present()].map((object) => [textOf(object), object]))
    for (const key of this.#owned.desired) this.#owned.saw(key, present.get(key))
    const { computed, network } = await this.#state(installation, signal)
    const { generation = 0 } = installation.metadata
    await this.#statuses.write(new Map([['network', network]]), { generation, found: view.statuses.objects, signal })
    const conditions = statusConditions({ state: network, generation, found: installation, now: this.#now() })
    const status = installationStatus({ computed, generation, conditions })
    if (!saysStatus(installation, status)) {
      const { apiVersion, kind, metadata } = installation
      const told = { apiVersion, kind, metadata: { name: metadata.name }, status }
      await client.apply(told, { fieldManager: FIELD_MANAGER, force: true, signal, subresource: 'status' })
    }
    if (computed !== undefined && !(this.#owned.complete && this.#poolTroubles.length === 0)) this.#again()
  }

  async #state(
    installation: ApiObject,
    signal: AbortSignal,
  ): Promise<{ readonly computed: Computed | undefined; readonly network: ComponentState }> {
    const { view, options, version, lease } = this.#of
    const { endpoint, wrong } = readEndpoint(view.configMaps.objects.get(`${options.namespace}/${ENDPOINT_MAP}`))
    let desired: Desired
    try {
      const provider = providerOf(await this.#version(signal), view.nodes.objects.values())
      const facts = { provider, hasKubeProxy: false, isFresh: true }
      const used = endpoint ?? endpointInUse(this.#daemonSet)
      desired = desiredOf({ installation, facts, endpoint: used, systemNamespace: options.systemNamespace, version })
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      return { computed: undefined, network: this.#network({ reason: 'InstallationInvalid', message: thrown.message }) }
    }
    const other = otherAgents(view, options)
    if (other !== undefined) {
      const message = `DaemonSet ${other} runs agents of another installation: two would want each node`
      return { computed: undefined, network: this.#network({ reason: 'OtherInstallation', message }) }
    }
    await this.#makePools(desired, signal)
    this.#owned.setDesired(desired.objects)
    await this.#owned.apply(() => lease.isHeld, signal)
    await this.#owned.prune(view.present(), signal)
    return { computed: desired.computed, network: this.#network(wrong) }
  }

  /** Before the agents: these would take addresses of their nodes' podCIDRs without them. */
  async #makePools({ pools }: Desired, signal: AbortSignal): Promise<void> {
    const { client, log, view } = this.#of
    const troubles: Trouble[] = []
    for (const pool of poolsToMake(pools, view.pools.objects.values())) {
      const trouble = await troubleOf(textOf(pool), async () => {
        await client.create(pool, { signal })
        log.info({ pool: pool.metadata.name }, 'pool.created')
        return undefined
      })
      if (trouble !== undefined) troubles.push(trouble)
    }
    this.#poolTroubles = troubles
  }

  get #daemonSet(): ApiObject | undefined {
    const { view, options } = this.#of
    return view.daemonSets.objects.get(`${options.systemNamespace}/${NODE}`)
  }

  #network(wrong: Cause | undefined): ComponentState {
    const { view, options } = this.#of
    const troubles = [...this.#poolTroubles, ...this.#owned.troubles]
    const pods = [...view.pods.objects.values()].filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === NODE)
    const rollout = rolloutState(this.#daemonSet, pods, this.#owned.generationOf(`DaemonSet ${options.systemNamespace}/${NODE}`))
    const [trouble] = troubles
    const objects = namesText(troubles.map(({ object }) => object))
    const degraded = wrong ?? (trouble === undefined ? undefined : { reason: trouble.reason, message: `${objects}: ${trouble.message}` })
    return { ...rollout, ...(degraded === undefined ? {} : { degraded }) }
  }

  async #version(signal: AbortSignal): Promise<string> {
    if (this.#serverVersion !== undefined) return this.#serverVersion
    const answer = await this.#of.client.request({ method: 'GET', path: '/version', signal })
    const version = isObject(answer) && typeof answer['gitVersion'] === 'string' ? answer['gitVersion'] : ''
    this.#serverVersion = version
    return version
  }
}

/** A DaemonSet of agents that is not the Installation's: of a manifest, or of a version before 3.31. */
function otherAgents({ daemonSets }: ClusterView, { systemNamespace }: OperatorOptions): string | undefined {
  const own = `${systemNamespace}/${NODE}`
  return [...daemonSets.objects.keys()].find((key) => key !== own && /\/(netplane-node|netplane-agent)$/.test(key))
}
