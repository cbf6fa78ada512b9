// SPDX-License-Identifier: Apache-2.0
/** What the operator knows of the cluster: informers, and what they say. Layer: operator. */
import { errorText } from '#lib/base/errors.ts'
import type { Clock } from '#lib/base/clock.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { Informer, type InformerOptions } from '#lib/api/informer.ts'
import type { ApiObject, Collection } from '#lib/api/resource.ts'
import { lockOf } from '#lib/kube/objects/cluster-information.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION } from '#lib/kube/operator-resources.ts'
import type { Log } from '#lib/obs/log.ts'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { FELIX_CONFIGURATION } from '#lib/render/felix-settings.ts'
import { PROXY_PODS } from '#lib/model/pod.ts'
import { MANAGED_BY } from '#lib/control/declared-managers.ts'
import { quietNode, quietNodeNetwork, quietPod } from '#lib/control/quiet-objects.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'

/** Kinds of what the operator renders, which every server has. */
const RENDERED = [
  ['v1', 'Namespace'],
  ['v1', 'ServiceAccount'],
  ['v1', 'ConfigMap'],
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
  /** kinds of what is rendered that this server has and others have not */
  readonly moreKinds: readonly Collection[]
  readonly onChange: () => void
}

interface Watched {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly keep?: InformerOptions['keep']
  /** level of the log */
  readonly failures?: 'warn' | 'debug'
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
  readonly felixConfigurations: Informer
  readonly nodeNetworks: Informer
  /** kube-proxy's among them */
  readonly kubeSystemDaemonSets: Informer
  readonly kubeProxyPods: readonly Informer[]
  readonly clusterInformations: Informer
  /** of its own namespace */
  readonly secrets: Informer
  /** of what it installs: ours */
  readonly copiedSecrets: Informer
  /** ours */
  readonly deployments: Informer
  readonly owned: readonly Informer[]

  constructor({ client, clock, log, namespace, systemNamespace, moreKinds, onChange }: ClusterViewOptions) {
    const informer = (apiVersion: string, kind: string, more: Watched = {}): Informer => {
      const { namespace: within, labelSelector, keep, failures = 'warn' } = more
      return new Informer({
        client,
        clock,
        collection: { apiVersion, kind, ...(within === undefined ? {} : { namespace: within }) },
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(keep === undefined ? {} : { keep }),
        onChange,
        onFailure: (error) => {
          log[failures]({ kind, reason: errorText(error) }, 'watch.failed')
        },
      })
    }
    const ours = `${OPERATOR_GROUP}/${OPERATOR_VERSION}`
    this.installations = informer(ours, 'Installation')
    this.statuses = informer(ours, 'NetplaneStatus')
    this.configMaps = informer('v1', 'ConfigMap', { namespace })
    this.nodes = informer('v1', 'Node', { keep: quietNode })
    this.pods = informer('v1', 'Pod', { namespace: systemNamespace, keep: quietPod })
    this.pools = informer('netplane.io/v3', 'IPPool')
    this.felixConfigurations = informer('netplane.io/v3', 'FelixConfiguration')
    this.nodeNetworks = informer('netplane.io/v3', 'NodeNetwork', { keep: quietNodeNetwork })
    this.kubeSystemDaemonSets = informer('apps/v1', 'DaemonSet', { namespace: 'kube-system' })
    this.kubeProxyPods = PROXY_PODS.map((of) => informer('v1', 'Pod', { ...of, keep: quietPod }))
    this.clusterInformations = informer('netplane.io/v3', 'ClusterInformation')
    this.daemonSets = informer('apps/v1', 'DaemonSet', { labelSelector: 'app.kubernetes.io/part-of=netplane' })
    const labelSelector = `${MANAGED_BY}=${FIELD_MANAGER}`
    this.secrets = informer('v1', 'Secret', { namespace })
    // refused until we have bound ourselves to the role; that it stays so the writes say
    this.copiedSecrets = informer('v1', 'Secret', { namespace: systemNamespace, labelSelector, failures: 'debug' })
    this.deployments = informer('apps/v1', 'Deployment', { labelSelector })
    const kinds = [...RENDERED, ...moreKinds.map(({ apiVersion, kind }) => [apiVersion, kind] as const)]
    this.owned = [...kinds.map(([apiVersion, kind]) => informer(apiVersion, kind, { labelSelector })), this.deployments]
  }

  /** Everything has been read once, but for what only a pass gives the right to. */
  get synced(): boolean {
    return this.#all.every(({ synced }) => synced)
  }

  /** The one that counts. */
  get installation(): ApiObject | undefined {
    return this.installations.objects.get('/default')
  }

  /** Of all nodes. */
  get felixConfiguration(): ApiObject | undefined {
    return this.felixConfigurations.objects.get(`/${FELIX_CONFIGURATION.name}`)
  }

  /** Why no object of netplane.io may be written; undefined: they may. */
  get lock(): string | undefined {
    return lockOf(this.clusterInformations.objects.get('/default'))
  }

  /** What is ours and there. */
  *present(): Iterable<ApiObject> {
    for (const { objects } of [...this.owned, this.copiedSecrets]) yield* objects.values()
  }

  async run(signal: AbortSignal): Promise<void> {
    await runTaskGroup(
      signal,
      [...this.#all, this.copiedSecrets].map((one) => (stop) => one.run(stop)),
    )
  }

  get #all(): readonly Informer[] {
    const { installations, statuses, configMaps, nodes, pods, pools, clusterInformations, daemonSets, secrets } = this
    const { felixConfigurations, nodeNetworks, kubeSystemDaemonSets, kubeProxyPods } = this
    const ours = [installations, statuses, configMaps, pools, clusterInformations, felixConfigurations, nodeNetworks, secrets]
    return [...ours, ...this.owned, nodes, pods, daemonSets, kubeSystemDaemonSets, ...kubeProxyPods]
  }
}
