// SPDX-License-Identifier: Apache-2.0
/** Every kind of object that is read, and its parser. Layer: lib/kube. */
import type { Sliced } from '../base/async/slices.ts'
import type { Kind } from '../model/kinds.ts'
import type { KubeObject } from '../model/snapshot.ts'
import type { ParseInput } from './parse/fields.ts'
import { parseAdminNetworkPolicy, parseBaselineAdminNetworkPolicy } from './parse/policy/admin-network-policy.ts'
import { parseClusterNetworkPolicy } from './parse/policy/cluster-network-policy.ts'
import { parseClusterInformation } from './objects/cluster-information.ts'
import { parseFelixConfiguration } from './parse/felix-configuration.ts'
import { parseEndpointSlice } from './parse/endpoint-slice.ts'
import { parseHostEndpoint } from './parse/host-endpoint.ts'
import { parseIPPool } from './parse/ip-pool.ts'
import { parseNetworkPolicy } from './parse/policy/network-policy.ts'
import { parseGlobalNetworkSet, parseNetworkSet } from './parse/network-set.ts'
import { parseNodeNetwork } from './objects/node-network.ts'
import { parseNamespace, parseNode } from './parse/node.ts'
import { parsePod } from './parse/pod.ts'
import {
  parseGlobalPolicy,
  parseStagedGlobalPolicy,
  parseStagedKubernetesPolicy,
  parseStagedV3Policy,
  parseV3Policy,
} from './parse/policy/v3-policy.ts'
import { parseProfile } from './parse/profile.ts'
import { parseService } from './parse/service.ts'
import { parseServiceAccount } from './parse/service-account.ts'
import { parseTier } from './parse/tier.ts'

export interface KindEntry {
  readonly kind: Kind
  /** what manifests call it; the same unless given */
  readonly manifestKind?: string
  readonly apiVersion: string
  readonly namespaced: boolean
  /** what may be long can be interrupted */
  readonly parse: (input: ParseInput) => KubeObject | Sliced<KubeObject>
}

const V3 = 'netplane.io/v3'
const ADMIN = 'policy.networking.k8s.io/v1alpha1'
const CLUSTER = 'policy.networking.k8s.io/v1alpha2'
const KUBERNETES_POLICY = { kind: 'KubernetesNetworkPolicy', manifestKind: 'NetworkPolicy' } as const

export const KINDS: readonly KindEntry[] = [
  { kind: 'Service', apiVersion: 'v1', namespaced: true, parse: parseService },
  { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', namespaced: true, parse: parseEndpointSlice },
  { kind: 'Pod', apiVersion: 'v1', namespaced: true, parse: parsePod },
  { kind: 'Namespace', apiVersion: 'v1', namespaced: false, parse: parseNamespace },
  { kind: 'Node', apiVersion: 'v1', namespaced: false, parse: parseNode },
  { kind: 'NodeNetwork', apiVersion: V3, namespaced: false, parse: parseNodeNetwork },
  { kind: 'IPPool', apiVersion: V3, namespaced: false, parse: parseIPPool },
  { kind: 'FelixConfiguration', apiVersion: V3, namespaced: false, parse: parseFelixConfiguration },
  { kind: 'ServiceAccount', apiVersion: 'v1', namespaced: true, parse: parseServiceAccount },
  { ...KUBERNETES_POLICY, apiVersion: 'networking.k8s.io/v1', namespaced: true, parse: parseNetworkPolicy },
  { kind: 'ClusterNetworkPolicy', apiVersion: CLUSTER, namespaced: false, parse: parseClusterNetworkPolicy },
  { kind: 'AdminNetworkPolicy', apiVersion: ADMIN, namespaced: false, parse: parseAdminNetworkPolicy },
  { kind: 'BaselineAdminNetworkPolicy', apiVersion: ADMIN, namespaced: false, parse: parseBaselineAdminNetworkPolicy },
  { kind: 'NetworkPolicy', apiVersion: V3, namespaced: true, parse: parseV3Policy },
  { kind: 'GlobalNetworkPolicy', apiVersion: V3, namespaced: false, parse: parseGlobalPolicy },
  { kind: 'StagedKubernetesNetworkPolicy', apiVersion: V3, namespaced: true, parse: parseStagedKubernetesPolicy },
  { kind: 'StagedNetworkPolicy', apiVersion: V3, namespaced: true, parse: parseStagedV3Policy },
  { kind: 'StagedGlobalNetworkPolicy', apiVersion: V3, namespaced: false, parse: parseStagedGlobalPolicy },
  { kind: 'Tier', apiVersion: V3, namespaced: false, parse: parseTier },
  { kind: 'NetworkSet', apiVersion: V3, namespaced: true, parse: parseNetworkSet },
  { kind: 'GlobalNetworkSet', apiVersion: V3, namespaced: false, parse: parseGlobalNetworkSet },
  { kind: 'Profile', apiVersion: V3, namespaced: false, parse: parseProfile },
  { kind: 'HostEndpoint', apiVersion: V3, namespaced: false, parse: parseHostEndpoint },
  { kind: 'ClusterInformation', apiVersion: V3, namespaced: false, parse: parseClusterInformation },
]
