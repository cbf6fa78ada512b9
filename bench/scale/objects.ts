// SPDX-License-Identifier: Apache-2.0
/** A large cluster, object by object, in the order in which an API server takes them. Layer: bench (pure). */
import { isObject } from '#lib/base/object.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { node, nodeNetwork, NODES, service, slice } from '../generate.ts'
import { frame, pod, policy } from '../policy-cluster.ts'

export const ENDPOINTS = 10
const PODS_PER_SERVICE = 2
const SERVICES_PER_POLICY = 10
/** Its definition is not installed here. */
const NOT_DEFINED = 'ClusterNetworkPolicy'

const SERVERS_OWN = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'generation'])

/** Nodes and services: what kube-proxy reads, and what everything else is in. */
export function* servicesOf(services: number): Generator<ApiObject> {
  for (const object of frame()) yield fresh(object)
  for (let at = 0; at < NODES; at++) {
    yield fresh(node(at))
    yield fresh(nodeNetwork(at))
  }
  for (let at = 0; at < services; at++) {
    yield fresh(service(at))
    yield fresh(slice(at, ENDPOINTS))
  }
}

/** What the agent reads besides, and kube-proxy does not. */
export function* podsAndPoliciesOf(services: number): Generator<ApiObject> {
  for (let at = 0; at < services * PODS_PER_SERVICE; at++) yield fresh(pod(at))
  let policies = 0
  for (let at = 0; policies < services / SERVICES_PER_POLICY; at++) {
    const object = fresh(policy(at))
    if (object.kind === NOT_DEFINED) continue
    policies++
    yield object
  }
}

/** Without what the server itself gives to an object. */
function fresh(manifest: object): ApiObject {
  const object = asApiObject(manifest)
  const metadata = Object.entries(object.metadata).filter(([field]) => !SERVERS_OWN.has(field))
  return asApiObject({ ...object, metadata: Object.fromEntries(metadata) })
}

/** The status to be written after the object: a pod's and a node's are not taken with it. */
export function statusOf(object: ApiObject): object | undefined {
  const { kind, status } = object
  return (kind === 'Pod' || kind === 'Node') && isObject(status) ? status : undefined
}
