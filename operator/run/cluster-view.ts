// SPDX-License-Identifier: Apache-2.0
/** What the operator knows of the cluster: informers, and what they say. Layer: operator. */
import { errorText } from '#lib/base/errors.ts'
import type { Clock } from '#lib/base/clock.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { Informer } from '#lib/api/informer.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION } from '#lib/kube/operator-resources.ts'
import type { Log } from '#lib/obs/log.ts'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { FIELD_MANAGER, MANAGED_BY } from '../objects/owned-fields.ts'

/** Kinds of what the operator renders. */
const RENDERED = [
  ['v1', 'Namespace'],
  ['v1', 'ServiceAccount'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
  ['rbac.authorization.k8s.io/v1', 'ClusterRoleBinding'],
  ['rbac.authorization.k8s.io/v1', 'Role'],
  ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
  ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy'],
  ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding'],
  ['apps/v1', 'DaemonSet'],
] as const

export interface ClusterViewOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Log
  readonly namespace: string
  readonly systemNamespace: string
  readonly onChange: () => void
}

export class ClusterView {
  readonly installations: Informer
  readonly statuses: Informer
  readonly configMaps: Informer
  readonly nodes: Informer
  readonly pods: Informer
  /** of this product, ours and those of other installations */
  readonly daemonSets: Informer
  readonly pools: Informer
  readonly owned: readonly Informer[]

  constructor({ client, clock, log, namespace, systemNamespace, onChange }: ClusterViewOptions) {
    const informer = (apiVersion: string, kind: string, more: { namespace?: string; labelSelector?: string } = {}): Informer => {
      const { namespace: within, labelSelector } = more
      return new Informer({
        client,
        clock,
        collection: { apiVersion, kind, ...(within === undefined ? {} : { namespace: within }) },
        ...(labelSelector === undefined ? {} : { labelSelector }),
        onChange,
        onFailure: (error) => {
          log.warn({ kind, reason: errorText(error) }, 'watch.failed')
        },
      })
    }
    const ours = `${OPERATOR_GROUP}/${OPERATOR_VERSION}`
    this.installations = informer(ours, 'Installation')
    this.statuses = informer(ours, 'NetplaneStatus')
    this.configMaps = informer('v1', 'ConfigMap', { namespace })
    this.nodes = informer('v1', 'Node')
    this.pods = informer('v1', 'Pod', { namespace: systemNamespace })
    this.pools = informer('netplane.io/v3', 'IPPool')
    this.daemonSets = informer('apps/v1', 'DaemonSet', { labelSelector: 'app.kubernetes.io/part-of=netplane' })
    this.owned = RENDERED.map(([apiVersion, kind]) => informer(apiVersion, kind, { labelSelector: `${MANAGED_BY}=${FIELD_MANAGER}` }))
  }

  /** Everything has been read once. */
  get synced(): boolean {
    return this.#all.every(({ synced }) => synced)
  }

  /** The one that counts. */
  get installation(): ApiObject | undefined {
    return this.installations.objects.get('/default')
  }

  /** What is ours and there. */
  *present(): Iterable<ApiObject> {
    for (const { objects } of this.owned) yield* objects.values()
  }

  async run(signal: AbortSignal): Promise<void> {
    await runTaskGroup(
      signal,
      this.#all.map((one) => (stop) => one.run(stop)),
    )
  }

  get #all(): readonly Informer[] {
    return [this.installations, this.statuses, this.configMaps, this.nodes, this.pods, this.pools, this.daemonSets, ...this.owned]
  }
}
