// SPDX-License-Identifier: Apache-2.0
/** Ids that are the same after every restart. Layer: agent/compile (pure). */
import { fnv1a64, sha256Start } from '#lib/base/hash.ts'
import type { Family } from '#lib/model/service.ts'
import type { ListId } from '../desired.ts'

export interface ListRef {
  readonly namespace: string
  readonly name: string
  /** the port's name, empty for the only one */
  readonly port: string
  readonly family: Family
  /** backends of this node only */
  readonly local: boolean
}

/** Ids that begin so are numbers of sets. */
const NUMBERED = '00000000'

/** Hash of "namespace/name:port"; the backends of the IPv6 side are a set of their own, "namespace/name:port/IPv6",
 * and so are those of one node, ".../local". Authors of services choose these texts: it must be a hash that does
 * not let them choose the id. */
export function listId(ref: ListRef): ListId {
  const id = sha256Start(listText(ref))
  return id.startsWith(NUMBERED) ? `f${id.slice(1)}` : id
}

/** The id that earlier agents used, made by a hash whose result authors could choose: rows that such agents left in the
 * kernel have it. */
export function listIdBefore(ref: ListRef): ListId {
  return fnv1a64(listText(ref))
}

function listText({ namespace, name, port, family, local }: ListRef): string {
  return `${namespace}/${name}:${port}${family === 'IPv6' ? '/IPv6' : ''}${local ? '/local' : ''}`
}

/** A set of prefixes that is known by number, in the form of a list's id. */
export function setId(set: number): ListId {
  return set.toString(16).padStart(16, '0')
}
