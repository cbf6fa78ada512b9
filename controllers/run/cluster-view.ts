// SPDX-License-Identifier: Apache-2.0
/** What the controllers know of the cluster: informers, and what they say. Layer: controllers. */
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { Informer, type InformerOptions } from '#lib/api/informer.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { lockOf } from '#lib/kube/objects/cluster-information.ts'
import { quietNode } from '#lib/control/quiet-objects.ts'
import type { Log } from '#lib/obs/log.ts'

export interface ClusterViewOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Log
  readonly onChange: () => void
}

const V3 = 'netplane.io/v3'

export class ClusterView {
  readonly configurations: Informer
  readonly nodes: Informer
  readonly nodeNetworks: Informer
  readonly hostEndpoints: Informer
  readonly clusterInformations: Informer

  constructor({ client, clock, log, onChange }: ClusterViewOptions) {
    const informer = (apiVersion: string, kind: string, keep?: InformerOptions['keep']): Informer =>
      new Informer({
        ...{ client, clock, onChange, collection: { apiVersion, kind } },
        ...(keep === undefined ? {} : { keep }),
        onFailure: (error) => {
          log.warn({ kind, reason: errorText(error) }, 'watch.failed')
        },
      })
    this.configurations = informer(V3, 'ControllersConfiguration')
    this.nodes = informer('v1', 'Node', quietNode)
    this.nodeNetworks = informer(V3, 'NodeNetwork')
    this.hostEndpoints = informer(V3, 'HostEndpoint')
    this.clusterInformations = informer(V3, 'ClusterInformation')
  }

  /** Everything has been read once. */
  get synced(): boolean {
    return this.#all.every(({ synced }) => synced)
  }

  get configuration(): ApiObject | undefined {
    return this.configurations.objects.get('/default')
  }

  get clusterInformation(): ApiObject | undefined {
    return this.clusterInformations.objects.get('/default')
  }

  /** Why no object of netplane.io may be written; undefined: they may. */
  get lock(): string | undefined {
    return lockOf(this.clusterInformation)
  }

  async run(signal: AbortSignal): Promise<void> {
    await runTaskGroup(
      signal,
      this.#all.map((one) => (stop) => one.run(stop)),
    )
  }

  get #all(): readonly Informer[] {
    return [this.configurations, this.nodes, this.nodeNetworks, this.hostEndpoints, this.clusterInformations]
  }
}
