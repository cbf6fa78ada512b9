// SPDX-License-Identifier: Apache-2.0
/** One pass: host endpoints are made as the configuration asks, what leaked is collected, and how it is, is told.
 * Layer: controllers. */
import type { Clock } from '#lib/base/clock.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { EventWriter } from '#lib/control/event-writer.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { Pass } from '#lib/control/pass-loop.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { Collection } from '../addresses/collection.ts'
import {
  CONFIGURATION,
  configurationStatus,
  configuredBy,
  EMPTY_CONFIGURATION,
  type Configured,
  type Work,
} from '../config/configuration.ts'
import type { Settings } from '../config/settings.ts'
import { endpointChanges, type Changes } from '../host-endpoints/changes.ts'
import { desiredEndpoints, type DesiredEndpoints } from '../host-endpoints/desired.ts'
import { EndpointWriter, type Written } from '../host-endpoints/endpoint-writer.ts'
import { nodeFacts, type ParsedNetworks } from '../host-endpoints/node-facts.ts'
import { ClusterInformationWriter } from '../status/cluster-information.ts'
import type { ClusterView } from './cluster-view.ts'

export interface ControllersPassOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: RootLog
  readonly view: ClusterView
  readonly namespace: string
  /** of the agents */
  readonly daemonSet: string
  readonly version: string
  /** false once another process may act */
  readonly mayAct: () => boolean
}

export class ControllersPass implements Pass {
  readonly endpoints: EndpointWriter
  readonly collection: Collection
  readonly #of: ControllersPassOptions
  readonly #writer: LockableApi
  readonly #information: ClusterInformationWriter
  readonly #events: EventWriter
  readonly #parsed: ParsedNetworks = new WeakMap()
  #settings: Settings | undefined
  #collectAt = 0

  constructor(of: ControllersPassOptions) {
    const { client, log, clock, view, mayAct, namespace, daemonSet, version } = of
    this.#of = of
    this.#writer = lockable(client, () => view.lock)
    this.endpoints = new EndpointWriter({ client: this.#writer, log, mayAct })
    this.collection = new Collection({ client, writer: this.#writer, clock, log, mayAct })
    this.#information = new ClusterInformationWriter({ client: this.#writer, clock, namespace, daemonSet, version })
    this.#events = new EventWriter({ client, log, component: CONTROLLERS_NAME, wall: () => clock.wall() })
  }

  /** What counted for another process may not be what counts. */
  forget(): void {
    this.#settings = undefined
  }

  /** How often it is to run when nothing changes. */
  get everyMs(): number {
    return this.#settings?.reconcileMs ?? 60_000
  }

  async run(signal: AbortSignal): Promise<boolean> {
    const { view, log } = this.#of
    // nothing of ours may be written
    if (view.lock !== undefined) return false
    const { configuration, clusterInformation, nodes } = view
    if (configuration === undefined) return await this.#makeConfiguration(signal)
    const configured = configuredBy(configuration, this.#settings)
    const { settings } = configured
    if (!deepEqual(settings.running, this.#settings?.running)) this.#collectAt = 0
    this.#settings = settings
    log.setLevel(settings.logLevel)
    const { work, isAgain } = await this.#hostEndpoints(settings, signal)
    await this.#tell(configuration, { configured, work }, signal)
    await this.#information.run(clusterInformation, nodes.objects.values(), signal)
    await this.#collect(settings, signal)
    return isAgain
  }

  /** For who looks for what can be set. */
  async #makeConfiguration(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#writer.create(EMPTY_CONFIGURATION, { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'AlreadyExists')) throw thrown
    }
    // the watch tells of it
    return false
  }

  async #hostEndpoints({ hostEndpoints }: Settings, signal: AbortSignal): Promise<{ readonly work: Work; readonly isAgain: boolean }> {
    const { view } = this.#of
    const facts = nodeFacts(view.nodes.objects.values(), view.nodeNetworks.objects.values(), this.#parsed)
    const desired = desiredEndpoints(facts, hostEndpoints)
    const todo = endpointChanges(desired, view.hostEndpoints.objects.values())
    const written = await this.endpoints.write(todo.changes, signal)
    return { work: workOf(desired, todo, written), isAgain: written.isAgain }
  }

  async #collect({ leakGraceMs, reconcileMs }: Settings, signal: AbortSignal): Promise<void> {
    const { clock, view } = this.#of
    if (leakGraceMs === undefined || clock.now() < this.#collectAt) return
    const nodes = new Set([...view.nodes.objects.values()].map(({ metadata }) => metadata.name))
    await this.collection.run(nodes, leakGraceMs, signal)
    this.#collectAt = clock.now() + reconcileMs
  }

  async #tell(found: ApiObject, { configured, work }: Told, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#of
    const now = `${new Date(clock.wall()).toISOString().slice(0, 19)}Z`
    const status = configurationStatus(configured, { found, work, now })
    const said = isObject(found['status']) ? found['status'] : {}
    if (deepEqual({ ...said, ...status }, said)) return
    const object = asApiObject({ ...CONFIGURATION, metadata: { name: found.metadata.name }, status })
    await client.apply(object, { fieldManager: CONTROLLERS_NAME, force: true, signal, subresource: 'status' })
    for (const type of ['Accepted', 'Synced']) await this.#event(type, { before: found, after: object }, signal)
  }

  /** Where a condition fails, or fails for another reason. */
  async #event(type: string, { before, after }: Turn, signal: AbortSignal): Promise<void> {
    const [was, is] = [findCondition(before, type), findCondition(after, type)]
    if (is?.status !== 'False' || (was?.status === 'False' && was.message === is.message)) return
    await this.#events.write(before, { type: 'Warning', reason: is.reason, message: is.message }, signal)
  }
}

interface Told {
  readonly configured: Configured
  readonly work: Work
}

/** The configuration with its status. */
interface Turn {
  readonly before: ApiObject
  readonly after: ApiObject
}

/** The gravest goes first. */
function workOf({ endpoints, waiting, doubled }: DesiredEndpoints, { taken }: Changes, { refused }: Written): Work {
  const [first] = refused
  if (first !== undefined) return { ok: false, reason: 'WriteRefused', message: `${namesText(refused.map(([name]) => name))}: ${first[1]}` }
  const names = [...taken, ...doubled]
  if (names.length > 0)
    return { ok: false, reason: 'NamesTaken', message: `others have these names, and stay as they are: ${namesText(names)}` }
  if (waiting.size > 0)
    return {
      ok: false,
      reason: 'AgentsUnready',
      message: `agents have not said their interfaces, or are too old to: ${namesText(waiting)}`,
    }
  return { ok: true, reason: 'Synced', message: `${endpoints.size} automatic host endpoints` }
}
