// SPDX-License-Identifier: Apache-2.0
/** The ClusterInformation `default`, where no controllers write it: made once, its version that of the agents that
 * started last, and how many nodes are ready. Layer: agent/status. */
import { isAbsent } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { serverVersion } from '#lib/api/identity.ts'
import { asApiObject, type Named } from '#lib/api/resource.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import {
  CLUSTER_INFORMATION,
  clusterInformationObject,
  clusterTypeOf,
  readClusterInformation,
  readinessOf,
  type ClusterInformationSpec,
  type DataplaneReadiness,
} from '#lib/kube/objects/cluster-information.ts'
import type { Labels } from '#lib/model/labels.ts'
import { ControllersLease } from './controllers-lease.ts'
import type { Due, Subject } from './outbox.ts'
import { TIMEOUT_MS, type StatusApi } from './status-api.ts'
import { placeAmong, turnMs } from './leader-order.ts'

/** How old its numbers of nodes may be; and another client may have deleted the object. */
const LOOK_MS = 60_000
/** Its kind may not be defined yet; or it may be this node's turn by then. */
const ABSENT_MS = 300_000

export interface ClusterFactsOptions {
  readonly api: StatusApi
  readonly node: string
  /** "0.1.0" */
  readonly version: string
  /** all nodes with their labels */
  readonly nodes: () => ReadonlyMap<string, { readonly labels: Labels }>
  /** this node's data plane is in place */
  readonly isReady: () => boolean
  /** unique to the cluster */
  readonly newGuid: () => string
  /** that the agents are of; undefined: they are of none that is known */
  readonly daemonSet?: Named | undefined
}

export class ClusterFacts implements Subject {
  readonly name = 'cluster'
  readonly #options: ClusterFactsOptions
  readonly #controllers: ControllersLease | undefined
  #at: number | undefined
  /** an agent that goes on while others are replaced does not take their version back */
  #isSaid = false

  constructor(options: ClusterFactsOptions) {
    const { api, daemonSet } = options
    this.#options = options
    this.#controllers = daemonSet?.namespace === undefined ? undefined : new ControllersLease(api, daemonSet.namespace)
  }

  due(now: number): readonly Due[] {
    const { node, nodes, isReady } = this.#options
    if (!isReady() || (this.#at !== undefined && now < this.#at)) return []
    const turn = turnMs(placeAmong(node, nodes().keys()), CLUSTER_INFORMATION.kind)
    if (turn === undefined || (turn > 0 && this.#at === undefined)) {
      this.#at = now + (turn ?? ABSENT_MS)
      return []
    }
    return [{ key: CLUSTER_INFORMATION.name, write: (signal) => this.#write(now, signal) }]
  }

  async #write(now: number, signal: AbortSignal): Promise<void> {
    try {
      if ((await this.#controllers?.isHeld(signal)) === true) {
        this.#at = now + LOOK_MS
        return
      }
      const [found, counted] = await Promise.all([this.#found(signal), Promise.allSettled([this.#dataplane(signal)])])
      const [nodes] = counted
      await this.#put(found, nodes.status === 'fulfilled' ? nodes.value : undefined, signal)
      // the rest does not wait for it: our rights may be older than we are
      if (nodes.status === 'rejected') throw nodes.reason
      this.#isSaid = true
      this.#at = now + LOOK_MS
    } catch (thrown) {
      if (!isAbsent(thrown) && !isRefused(thrown, 'AlreadyExists')) throw thrown
      this.#at = now + ABSENT_MS
    }
  }

  async #put(
    found: Partial<ClusterInformationSpec> | undefined,
    dataplane: DataplaneReadiness | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, version, newGuid } = this.#options
    const options = { signal, timeoutMs: TIMEOUT_MS }
    const netplaneVersion = `v${version}`
    const isOther = !this.#isSaid && found?.netplaneVersion !== netplaneVersion
    const { clusterGUID = newGuid(), clusterType, datastoreReady = true } = found ?? {}
    const spec = {
      clusterGUID,
      clusterType: clusterType ?? (await this.#type(signal)),
      netplaneVersion: isOther ? netplaneVersion : (found?.netplaneVersion ?? netplaneVersion),
      datastoreReady,
      ...(dataplane && { dataplane }),
    }
    if (found === undefined) await api.create(asApiObject(clusterInformationObject(spec)), options)
    else if (!deepEqual({ ...found, ...spec }, found)) await api.patch(CLUSTER_INFORMATION, { spec }, { type: 'merge', ...options })
  }

  async #dataplane(signal: AbortSignal): Promise<DataplaneReadiness | undefined> {
    const { api, daemonSet } = this.#options
    try {
      return daemonSet && readinessOf(await api.get(daemonSet, { signal, timeoutMs: TIMEOUT_MS }))
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined
      throw thrown
    }
  }

  async #found(signal: AbortSignal): Promise<Partial<ClusterInformationSpec> | undefined> {
    try {
      return readClusterInformation(await this.#options.api.get(CLUSTER_INFORMATION, { signal, timeoutMs: TIMEOUT_MS }))
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined
      throw thrown
    }
  }

  async #type(signal: AbortSignal): Promise<string> {
    const { api, node, nodes } = this.#options
    const version = await serverVersion(api, { signal, timeoutMs: TIMEOUT_MS })
    return clusterTypeOf(version, nodes().get(node)?.labels ?? new Map())
  }
}
