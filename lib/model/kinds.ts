// SPDX-License-Identifier: Apache-2.0
/** Every kind of object that sources have. Layer: lib/model. */
import { POLICY_KINDS, type PolicyKind } from './policy.ts'

/** By kind: where a snapshot has its objects. */
export const COLLECTIONS = {
  Service: 'services',
  EndpointSlice: 'slices',
  // of several with one address one has it: `compareOwners`
  Pod: 'pods',
  Namespace: 'namespaces',
  Node: 'nodes',
  // what agents say of their nodes, which is in `nodes` already
  NodeNetwork: 'nodeNetworks',
  IPPool: 'pools',
  FelixConfiguration: 'felixConfigurations',
  ServiceAccount: 'serviceAccounts',
  GlobalNetworkPolicy: 'policies',
  StagedGlobalNetworkPolicy: 'policies',
  NetworkPolicy: 'policies',
  StagedNetworkPolicy: 'policies',
  KubernetesNetworkPolicy: 'policies',
  StagedKubernetesNetworkPolicy: 'policies',
  ClusterNetworkPolicy: 'policies',
  AdminNetworkPolicy: 'policies',
  BaselineAdminNetworkPolicy: 'policies',
  Tier: 'tiers',
  // the keys of global ones have no slash
  NetworkSet: 'networkSets',
  GlobalNetworkSet: 'networkSets',
  Profile: 'profiles',
  HostEndpoint: 'hostEndpoints',
  ClusterInformation: 'clusterInformations',
} as const satisfies Readonly<Record<PolicyKind, 'policies'>> & Readonly<Record<string, string>>

export type Kind = keyof typeof COLLECTIONS
export type CollectionName = (typeof COLLECTIONS)[Kind]

export function isPolicyKind(kind: Kind): kind is PolicyKind {
  return COLLECTIONS[kind] === 'policies'
}

const POLICY_MATTERS: ReadonlySet<string> = new Set([...POLICY_KINDS, 'Tier', 'NetworkSet', 'GlobalNetworkSet', 'Profile', 'HostEndpoint'])

/** Kinds that say what is let through: policies, and what they rest on. Without their last good versions a restart
 * would open or close something. */
export function isPolicyMatter(kind: string): boolean {
  return POLICY_MATTERS.has(kind)
}
