// SPDX-License-Identifier: Apache-2.0
/** What is asked of the API server: every kind that is read, of pods those that can matter, and of Nodes one.
 * Layer: lib/api (pure). */
import { KINDS, type KindEntry } from '../../kube/kinds.ts'
import type { Kind } from '../../model/kinds.ts'
import { messageFor } from '../decode/messages.ts'
import type { Message } from '../decode/protobuf.ts'
import type { Collection } from '../resource.ts'

export interface WatchedKind extends Collection {
  readonly entry: KindEntry
  readonly fieldSelector: string | undefined
  /** its kind need not be there: an administrator has to install its definition. Without the others there would be
   * no other nodes */
  readonly optional: boolean
  /** undefined: it comes as JSON alone */
  readonly message: Message | undefined
}

/** A pod without a node has no address yet, and one that is finished none any more. */
const SELECTORS: Partial<Readonly<Record<Kind, string>>> = {
  Pod: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed',
}

const BUILT_IN = /^(v1|discovery\.k8s\.io\/v1|networking\.k8s\.io\/v1)$/

/** On any node. */
export const WATCHED: readonly WatchedKind[] = KINDS.map((entry) => {
  const { apiVersion } = entry
  const kind = entry.manifestKind ?? entry.kind
  return {
    ...{ entry, apiVersion, kind },
    fieldSelector: SELECTORS[entry.kind],
    optional: !BUILT_IN.test(apiVersion) && entry.kind !== 'NodeNetwork',
    message: messageFor({ apiVersion, kind }),
  }
})

/** As a node asks: kubelets report every few minutes that theirs are still there, which is nothing to others. */
export function watchedOn(node: string): readonly WatchedKind[] {
  return WATCHED.map((watched) => (watched.entry.kind === 'Node' ? { ...watched, fieldSelector: `metadata.name=${node}` } : watched))
}
