// SPDX-License-Identifier: Apache-2.0
/** Ids that are the same after every restart. Layer: agent/compile (pure). */
import { fnv1a64 } from '#lib/base/hash.ts'
import type { Family } from '#lib/model/service.ts'
import type { ListId } from './desired.ts'

export interface ListRef {
  readonly namespace: string
  readonly name: string
  /** the port's name, empty for the only one */
  readonly port: string
  readonly family: Family
  /** backends of this node only */
  readonly local: boolean
}

/** Hash of "namespace/name:port"; the backends of the IPv6 side are a set of their own, "namespace/name:port/IPv6", and so are those of
 * one node, ".../local". Two of 10,000 ports share an id with a chance of about 1 in 10^11. */
export function listId(ref: ListRef): ListId {
  return fnv1a64(`${ref.namespace}/${ref.name}:${ref.port}${ref.family === 'IPv6' ? '/IPv6' : ''}${ref.local ? '/local' : ''}`)
}

/** A set of prefixes that is known by number, in the form of a list's id. */
export function setId(set: number): ListId {
  return set.toString(16).padStart(16, '0')
}
