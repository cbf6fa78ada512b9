// SPDX-License-Identifier: Apache-2.0
/** The identity of an object: kind, namespace and name. Layer: lib/model. */
import { isPolicyKind, type Kind } from './kinds.ts'

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

/** The key of an object in its collection of a snapshot: there are policies of several kinds with one name. */
export function objectKey(ref: Ref): string {
  return isPolicyKind(ref.kind) ? refText(ref) : nameKey(ref)
}
