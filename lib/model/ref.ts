// SPDX-License-Identifier: Apache-2.0
/** The identity of an object: kind, namespace and name. Layer: lib/model. */

import type { PolicyKind } from './policy.ts'

export type Kind =
  | 'Service'
  | 'EndpointSlice'
  | 'Pod'
  | 'Namespace'
  | 'Node'
  | 'NodeNetwork'
  | 'IPPool'
  | 'FelixConfiguration'
  | 'ServiceAccount'
  | PolicyKind
  | 'Tier'
  | 'NetworkSet'
  | 'GlobalNetworkSet'
  | 'Profile'
  | 'HostEndpoint'

export interface Ref {
  readonly kind: Kind
  /** empty for what belongs to the whole cluster */
  readonly namespace: string
  readonly name: string
}

/** "Service/default/web", "Node/n1": unique in a cluster, because names hold no slash. */
export function refText(ref: Ref): string {
  return `${ref.kind}/${nameKey(ref)}`
}

/** "default/web", "n1": unique among objects of one kind. */
export function nameKey(ref: { readonly namespace: string; readonly name: string }): string {
  return ref.namespace === '' ? ref.name : `${ref.namespace}/${ref.name}`
}
