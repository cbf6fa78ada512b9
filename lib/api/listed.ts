// SPDX-License-Identifier: Apache-2.0
/** All objects of a kind, and all blocks of addresses, as the API server has them now, parsed. Layer: lib/api. */
import { InternalError } from '../base/errors.ts'
import type { Rejected } from '../base/result.ts'
import { IP_BLOCK, parseIPBlock } from '../kube/objects/ip-block.ts'
import { FieldError } from '../kube/parse/fields.ts'
import { identify, parseObject } from '../kube/parse/parse-object.ts'
import type { IPBlock } from '../model/ip-block.ts'
import type { Kind } from '../model/kinds.ts'
import type { KubeObject } from '../model/snapshot.ts'
import type { ApiClient } from './client.ts'
import type { ApiObject } from './resource.ts'
import { WATCHED } from './watch/watch-list.ts'

type Lister = Pick<ApiClient, 'list'>
type OfKind<K extends Kind> = Extract<KubeObject, { readonly kind: K }>

interface ListedOptions {
  readonly signal?: AbortSignal
}

export interface Listed<T> {
  readonly found: readonly T[]
  /** of those that cannot be read, and that are not among the others */
  readonly unreadable: readonly Rejected[]
}

export interface FoundBlock {
  readonly object: ApiObject
  readonly block: IPBlock
}

/** Those that a watch of the kind has: of pods, those that have a node and are not finished. */
export async function listKind<K extends Kind>(client: Lister, kind: K, options: ListedOptions = {}): Promise<Listed<OfKind<K>>> {
  const watched = WATCHED.find(({ entry }) => entry.kind === kind)
  if (watched === undefined) throw new InternalError(`${kind} is not read`)
  const { apiVersion, kind: named, fieldSelector = '', message } = watched
  const objects = await client.list({ apiVersion, kind: named }, { fieldSelector, message, ...options })
  const parsed = objects.map((object) => {
    const identified = identify(object)
    return identified.kind === 'ours' ? parseObject(object, identified.ref) : undefined
  })
  const isOfKind = (value: KubeObject): value is OfKind<K> => value.kind === kind
  return {
    found: parsed.flatMap((one) => (one?.kind === 'ok' && isOfKind(one.value) ? [one.value] : [])),
    unreadable: parsed.flatMap((one) => (one?.kind === 'rejected' ? one.rejected : [])),
  }
}

export async function listBlocks(client: Lister, options: ListedOptions = {}): Promise<Listed<FoundBlock>> {
  const found: FoundBlock[] = []
  const unreadable: Rejected[] = []
  for (const object of await client.list(IP_BLOCK, options))
    try {
      found.push({ object, block: parseIPBlock(object) })
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      unreadable.push({ ref: `${IP_BLOCK.kind}/${object.metadata.name}`, path: thrown.path, reason: thrown.reason })
    }
  return { found, unreadable }
}
