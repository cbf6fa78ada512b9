// SPDX-License-Identifier: Apache-2.0
/** ClusterInformation objects, both ways, and what the cluster shows of where it runs. Layer: lib/kube. */
import { isObject } from '../../base/object.ts'
import { LOCKED, type ClusterInformation } from '../../model/cluster-information.ts'
import type { Labels } from '../../model/labels.ts'
import { inside, type ParseInput } from '../parse/fields.ts'
import { clusterInformationSpec } from '../schema/cluster-information.ts'

export const CLUSTER_INFORMATION = { apiVersion: 'netplane.io/v3', kind: 'ClusterInformation', name: 'default' } as const

/** Its spec. */
export interface ClusterInformationSpec {
  readonly clusterGUID: string
  /** "k8s,eks" */
  readonly clusterType: string
  readonly netplaneVersion: string
  readonly datastoreReady: boolean
  readonly dataplane?: DataplaneReadiness
}

/** Numbers of nodes. */
export interface DataplaneReadiness {
  readonly nodes: number
  readonly ready: number
  readonly updated: number
}

/** As a DaemonSet's controller counts its pods; undefined: it has not counted them yet, or counted those of another
 * version of the set. */
export function readinessOf({ metadata, status }: Readonly<Record<string, unknown>>): DataplaneReadiness | undefined {
  if (!isObject(status) || !isObject(metadata) || status['observedGeneration'] !== metadata['generation']) return undefined
  const count = (name: string): number => (typeof status[name] === 'number' ? status[name] : 0)
  return { nodes: count('desiredNumberScheduled'), ready: count('numberReady'), updated: count('updatedNumberScheduled') }
}

export function clusterInformationObject(spec: ClusterInformationSpec) {
  const { name, ...kind } = CLUSTER_INFORMATION
  return { ...kind, metadata: { name }, spec }
}

/** As far as others go by it; the rest is for people. */
export function parseClusterInformation({ raw, name }: ParseInput): ClusterInformation {
  const datastoreReady = inside(raw, 'spec', (spec) => clusterInformationSpec.at(spec, 'datastoreReady'))
  return { kind: 'ClusterInformation', namespace: '', name, datastoreReady }
}

/** What it says; parts that it does not say are missing. */
export function readClusterInformation(object: Readonly<Record<string, unknown>>): Partial<ClusterInformationSpec> {
  const spec = isObject(object['spec']) ? object['spec'] : {}
  const text = (name: keyof ClusterInformationSpec) => (typeof spec[name] === 'string' && spec[name] !== '' ? { [name]: spec[name] } : {})
  return {
    ...text('clusterGUID'),
    ...text('clusterType'),
    ...text('netplaneVersion'),
    ...(typeof spec['datastoreReady'] === 'boolean' ? { datastoreReady: spec['datastoreReady'] } : {}),
    ...(isReadiness(spec['dataplane']) ? { dataplane: spec['dataplane'] } : {}),
  }
}

/** Why no object of ours may be written, for those who have no snapshot; undefined: they may. */
export function lockOf(object: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return object !== undefined && readClusterInformation(object).datastoreReady === false ? LOCKED : undefined
}

function isReadiness(value: unknown): value is DataplaneReadiness {
  return isObject(value) && ['nodes', 'ready', 'updated'].every((name) => typeof value[name] === 'number')
}

const ORCHESTRATOR = 'k8s'

/** What builders of Kubernetes add to its version. */
const VERSIONS: readonly (readonly [RegExp, string])[] = [
  [/-eks-/, 'eks'],
  [/-gke\./, 'gke'],
  [/\+k3s/, 'k3s'],
  [/\+rke2/, 'rke2'],
  [/\+vmware/, 'tkg'],
  [/-mirantis/, 'mke'],
]

/** Labels that installers put on nodes. */
const LABELS: readonly (readonly [string, string])[] = [
  ['kubernetes.azure.com/cluster', 'aks'],
  ['eks.amazonaws.com/nodegroup', 'eks'],
  ['cloud.google.com/gke-nodepool', 'gke'],
  ['node.openshift.io/os_id', 'openshift'],
  ['kops.k8s.io/instancegroup', 'kops'],
  ['com.docker.ucp.orchestrator.kubernetes', 'mke'],
]

/** From the version that the API server says, and the labels of a node. */
export function clusterTypeOf(version: string, labels: Labels): string {
  const byVersion = VERSIONS.flatMap(([pattern, type]) => (pattern.test(version) ? [type] : []))
  const byLabel = LABELS.flatMap(([label, type]) => (labels.has(label) ? [type] : []))
  return [ORCHESTRATOR, ...new Set([...byVersion, ...byLabel])].join(',')
}
