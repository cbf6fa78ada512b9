// SPDX-License-Identifier: Apache-2.0
/** The ClusterInformation: made once, its version once every node runs it, and how many nodes are ready.
 * Layer: controllers. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#lib/base/clock.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { agentVersion } from '#lib/control/cluster-version.ts'
import type { LockableApi } from '#lib/api/lockable.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import {
  CLUSTER_INFORMATION,
  clusterInformationObject,
  clusterTypeOf,
  readClusterInformation,
  readinessOf,
  type ClusterInformationSpec,
  type DataplaneReadiness,
} from '#lib/kube/objects/cluster-information.ts'

export interface ClusterInformationOptions {
  readonly client: Pick<LockableApi, 'get' | 'create' | 'patch' | 'request'>
  readonly clock: Clock
  /** "3.31.5" */
  readonly version: string
  /** of the agents */
  readonly namespace: string
  readonly daemonSet: string
}

/** How old the numbers of nodes may be: nothing watches them. */
export const LOOK_MS = 30_000

export interface Facts {
  readonly version: string
  /** of new agents: "v3.31.5"; undefined: their image does not say it */
  readonly agents: string | undefined
  readonly dataplane: DataplaneReadiness | undefined
  readonly clusterType: () => Promise<string>
  readonly newGuid: () => string
}

/** As it is to be. The version is the last one that all nodes have run. */
export async function clusterInformation(found: Partial<ClusterInformationSpec>, facts: Facts): Promise<ClusterInformationSpec> {
  const { version, agents, dataplane, clusterType, newGuid } = facts
  const running = `v${version}`
  // controllers may come before the agents of their version, or be there still when those of another have come
  const isOurs = agents === undefined || agents === running
  const isOnAll =
    isOurs && dataplane !== undefined && dataplane.nodes > 0 && dataplane.updated === dataplane.nodes && dataplane.ready === dataplane.nodes
  return {
    clusterGUID: found.clusterGUID ?? newGuid(),
    clusterType: found.clusterType ?? (await clusterType()),
    netplaneVersion: isOnAll ? running : (found.netplaneVersion ?? running),
    datastoreReady: found.datastoreReady ?? true,
    ...(dataplane && { dataplane }),
  }
}

export class ClusterInformationWriter {
  readonly #options: ClusterInformationOptions
  #nextAt = 0
  #seen: string | undefined

  constructor(options: ClusterInformationOptions) {
    this.#options = options
  }

  /** Does nothing where it was done a moment ago and the object is as it was then. */
  async run(object: ApiObject | undefined, nodes: Iterable<ApiObject>, signal: AbortSignal): Promise<void> {
    const { client, clock, version, namespace, daemonSet: name } = this.#options
    const seen = object?.metadata.resourceVersion
    if (object !== undefined && seen === this.#seen && clock.now() < this.#nextAt) return
    const agents: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name }
    const daemonSet = await getOrNone(client, agents, { signal })
    const found = object === undefined ? {} : readClusterInformation(object)
    const spec = await clusterInformation(found, {
      version,
      agents: daemonSet && agentVersion(daemonSet),
      dataplane: daemonSet && readinessOf(daemonSet),
      clusterType: () => this.#clusterType(nodes, signal),
      newGuid: randomUUID,
    })
    if (object === undefined) await this.#create(spec, signal)
    else if (!deepEqual({ ...found, ...spec }, found)) await client.patch(CLUSTER_INFORMATION, { spec }, { type: 'merge', signal })
    this.#nextAt = clock.now() + LOOK_MS
    this.#seen = seen
  }

  async #create(spec: ClusterInformationSpec, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.client.create(asApiObject(clusterInformationObject(spec)), { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'AlreadyExists')) throw thrown
    }
  }

  async #clusterType(nodes: Iterable<ApiObject>, signal: AbortSignal): Promise<string> {
    const answer = await this.#options.client.request({ method: 'GET', path: '/version', signal })
    const version = isObject(answer) && typeof answer['gitVersion'] === 'string' ? answer['gitVersion'] : ''
    const [{ metadata: { labels = {} } } = { metadata: {} }] = nodes
    return clusterTypeOf(version, new Map(Object.entries(labels)))
  }
}
