// SPDX-License-Identifier: Apache-2.0
/** What there is to be, from what the cluster says. Layer: operator (pure). */
import { FieldError } from '#lib/kube/parse/fields.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { clusterTypeOf } from '#lib/kube/objects/cluster-information.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation, type Computed, type ClusterFacts, type InstallationSpec } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import type { Endpoint } from '#lib/render/input.ts'
import { renderNamespace, renderNode } from '#lib/render/render.ts'
import type { Provider } from '#lib/render/providers.ts'
import { FIELD_MANAGER, MANAGED_BY } from '../objects/owned-fields.ts'

export interface DesiredInput {
  readonly installation: ApiObject
  readonly facts: ClusterFacts
  readonly endpoint: Endpoint | undefined
  readonly systemNamespace: string
  readonly version: string
}

export interface Desired {
  readonly computed: Computed
  readonly pools: NonNullable<InstallationSpec['netplaneNetwork']>['ipPools']
  readonly objects: readonly ApiObject[]
}

/** Throws FieldError where the spec cannot be read, or asks for what is not there. */
export function desiredOf({ installation, facts, endpoint, systemNamespace, version }: DesiredInput): Desired {
  const spec = readSpec(installation)
  refuse(spec, facts)
  const computed = computeInstallation(spec, facts)
  const input = { namespace: systemNamespace, image: imageOf(computed, version), computed, endpoint }
  return {
    computed,
    pools: spec.netplaneNetwork?.ipPools ?? [],
    objects: [renderNamespace(systemNamespace), ...renderNode(input)].map(managed),
  }
}

/** What this version cannot do yet. Throws FieldError for the first of it. */
function refuse({ netplaneNetwork, nodeUpdateStrategy, controllerPods, provider }: InstallationSpec, facts: ClusterFacts): void {
  const is = provider ?? facts.provider
  const asked: readonly (readonly [boolean, string, string])[] = [
    [netplaneNetwork?.linuxDataplane !== 'BPF', 'netplaneNetwork.linuxDataplane', 'must be BPF: this version has no Standard mode'],
    [is === 'OpenShift' || is === 'MKE', 'provider', `${is} is not supported by this version`],
    [netplaneNetwork?.mtu !== undefined, 'netplaneNetwork.mtu', 'this version finds it out by itself'],
    [netplaneNetwork?.hostPorts === 'Disabled', 'netplaneNetwork.hostPorts', 'must be Enabled in this version'],
    [netplaneNetwork?.kubeProxyManagement === 'Enabled', 'netplaneNetwork.kubeProxyManagement', 'must be Disabled in this version'],
    [nodeUpdateStrategy?.canary !== undefined, 'nodeUpdateStrategy.canary', 'is not supported by this version'],
    [controllerPods !== undefined, 'controllerPods', 'there are no controllers in this version'],
  ]
  const found = asked.find(([isAsked]) => isAsked)
  if (found !== undefined) throw new FieldError(`spec.${found[1]}`, found[2])
}

function readSpec(installation: ApiObject): InstallationSpec {
  try {
    return installationSpec.read(installation['spec'] ?? {})
  } catch (thrown) {
    throw thrown instanceof FieldError ? thrown.under('spec') : thrown
  }
}

function managed(object: ApiObject): ApiObject {
  const { labels } = object.metadata
  return { ...object, metadata: { ...object.metadata, labels: { ...labels, [MANAGED_BY]: FIELD_MANAGER } } }
}

const PROVIDERS_BY_TYPE: readonly (readonly [string, Provider])[] = [
  ['openshift', 'OpenShift'],
  ['aks', 'AKS'],
  ['eks', 'EKS'],
  ['mke', 'MKE'],
  ['rke2', 'RKE2'],
  ['kops', 'KOPS'],
]

/** From the server's version and the labels of any node. */
export function providerOf(version: string, nodes: Iterable<ApiObject>): Provider {
  for (const { metadata } of nodes) {
    const types = clusterTypeOf(version, new Map(Object.entries(metadata.labels ?? {}))).split(',')
    const found = PROVIDERS_BY_TYPE.find(([type]) => types.includes(type))
    if (found !== undefined) return found[1]
  }
  return 'Generic'
}
