// SPDX-License-Identifier: Apache-2.0
/** Reads, once for each preflight, what no watch is worth. Layer: operator. */
import { getOrNone, listOrNone } from '#lib/api/absent.ts'
import { allInOrder } from '#lib/base/async/all-in-order.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Endpoint } from '#lib/render/input.ts'
import type { Platform } from '#lib/render/providers.ts'
import { hasAddress } from '#lib/preflight/endpoint-owner.ts'
import { hasSideCar } from '#lib/preflight/side-car.ts'
import { isFloating, type ClusterObjects } from './cluster-findings.ts'

type Read = Pick<ClusterObjects, 'proxyConfig' | 'services' | 'networkPolicies' | 'policies' | 'pods' | 'applicationObjects'>

const V3 = 'netplane.io/v3'

/** Kinds of policies that have rules. */
export const POLICY_KINDS = ['NetworkPolicy', 'GlobalNetworkPolicy', 'StagedNetworkPolicy', 'StagedGlobalNetworkPolicy'] as const

/** What asks for a firewall of the web, or for logs of requests; no cluster needs to have these kinds. */
export const APPLICATION_KINDS = [
  ['operator.netplane.io/v1', 'ApplicationLayer'],
  [V3, 'WAFPolicy'],
  [V3, 'GlobalWAFPolicy'],
] as const

export async function readClusterObjects(
  client: Pick<ApiClient, 'get' | 'list' | 'pages'>,
  { platform, endpoint }: { readonly platform: Platform; readonly endpoint: Endpoint | undefined },
  signal: AbortSignal,
): Promise<Read> {
  const { namespace, configMap } = platform.kubeProxy
  const list = async (apiVersion: string, kind: string): Promise<readonly ApiObject[]> =>
    await listOrNone(client, { apiVersion, kind }, { signal })
  const [services, networkPolicies, pods, policies, applicationObjects, proxyConfig] = await allInOrder([
    list('v1', 'Service'),
    list('networking.k8s.io/v1', 'NetworkPolicy'),
    podsThatCount(client, endpoint?.host, signal),
    allInOrder(POLICY_KINDS.map((kind) => list(V3, kind))),
    allInOrder(APPLICATION_KINDS.map(([apiVersion, kind]) => list(apiVersion, kind))),
    getOrNone(client, { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: configMap }, { signal }),
  ])
  return {
    services,
    networkPolicies,
    pods,
    policies: policies.flat(),
    applicationObjects: applicationObjects.flat(),
    proxyConfig,
  }
}

/** A large cluster has a hundred thousand pods: of each page those stay that a finding is about. */
async function podsThatCount(
  client: Pick<ApiClient, 'pages'>,
  host: string | undefined,
  signal: AbortSignal,
): Promise<readonly ApiObject[]> {
  const pods: ApiObject[] = []
  for await (const { items } of client.pages({ apiVersion: 'v1', kind: 'Pod' }, { signal }))
    for (const item of items) {
      const pod = { apiVersion: 'v1', kind: 'Pod', ...item }
      if (isApiObject(pod) && (isFloating(pod) || hasSideCar(pod) || hasAddress(pod, host))) pods.push(pod)
    }
  return pods
}
