// SPDX-License-Identifier: Apache-2.0
/** What the cluster says of its own version, and what its nodes run. Layer: lib/control. */
import type { ApiClient } from '../api/client.ts'
import { getOrNone } from '../api/absent.ts'
import type { ApiObject } from '../api/resource.ts'
import { fieldsOf, isObject } from '../base/object.ts'
import { compareText } from '../base/order.ts'
import { CLUSTER_INFORMATION, readClusterInformation, type ClusterInformationSpec } from '../kube/objects/cluster-information.ts'
import { NODE } from '../render/input.ts'

/** Undefined: the cluster has none, or does not know the kind. */
export async function clusterInformation(client: ApiClient): Promise<Partial<ClusterInformationSpec> | undefined> {
  return await informationAt(client, CLUSTER_INFORMATION.apiVersion)
}

/** As versions before this one store it; of no meaning where there is one of this version. */
export async function storedInformation(client: ApiClient): Promise<Partial<ClusterInformationSpec> | undefined> {
  return await informationAt(client, 'crd.netplane.io/v1')
}

async function informationAt(client: ApiClient, apiVersion: string): Promise<Partial<ClusterInformationSpec> | undefined> {
  const found = await getOrNone(client, { ...CLUSTER_INFORMATION, apiVersion })
  return found === undefined ? undefined : readClusterInformation(found)
}

/** Of agents. */
export interface RunningVersion {
  /** "v3.31.5", as their image's tag says; the image where it says none; "v3.31.5 (not running)" */
  readonly version: string
  readonly nodes: number
}

/** Those of pods of agents: before 3.31 they had other labels, and with flannel inside another name. */
const AGENT_LABELS = [`app.kubernetes.io/name=${NODE}`, `k8s-app in (${NODE},canal)`]

/** Of every node that has an agent, most of them first. */
export async function runningVersions(client: ApiClient): Promise<readonly RunningVersion[]> {
  return countVersions(await agentPods(client))
}

/** Of this version and of those before, each once. */
export async function agentPods(client: Pick<ApiClient, 'list'>): Promise<readonly ApiObject[]> {
  const lists = AGENT_LABELS.map((labelSelector) => client.list({ apiVersion: 'v1', kind: 'Pod' }, { labelSelector }))
  const pods = (await Promise.all(lists)).flat()
  return [...new Map(pods.map((pod) => [pod.metadata.uid, pod])).values()]
}

export async function nodeCount(client: ApiClient): Promise<number> {
  return (await client.list({ apiVersion: 'v1', kind: 'Node' })).length
}

export function countVersions(pods: readonly ApiObject[]): readonly RunningVersion[] {
  const byVersion = Map.groupBy(pods, (pod) => versionOf(pod))
  return [...byVersion]
    .map(([version, { length }]) => ({ version, nodes: length }))
    .sort((a, b) => b.nodes - a.nodes || compareText(a.version, b.version))
}

function versionOf({ spec, status }: ApiObject): string {
  const image = agentIn(spec, 'containers')?.['image']
  const shown = typeof image === 'string' ? image : 'unknown'
  const version = taggedVersion(shown) ?? shown
  const state = agentIn(status, 'containerStatuses')?.['state']
  // an image that cannot be pulled, and one that ends again and again
  return isObject(state) && state['running'] === undefined ? `${version} (not running)` : version
}

/** What new agents of a DaemonSet run, by their image's tag; undefined: it says none. */
export function agentVersion({ spec }: ApiObject): string | undefined {
  const template = fieldsOf(fieldsOf(spec)['template'])
  const image = agentIn(template['spec'], 'containers')?.['image']
  return typeof image === 'string' ? taggedVersion(image) : undefined
}

function taggedVersion(image: string): string | undefined {
  const tag = /:v?(\d+\.\d+\.\d+[^:/@]*)(@|$)/.exec(image)?.[1]
  return tag === undefined ? undefined : `v${tag}`
}

function agentIn(part: unknown, list: string): Readonly<Record<string, unknown>> | undefined {
  const containers: unknown = isObject(part) ? part[list] : undefined
  const agent: unknown = Array.isArray(containers) ? containers.find((one) => isObject(one) && one['name'] === NODE) : undefined
  return isObject(agent) ? agent : undefined
}
