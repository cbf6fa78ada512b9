// SPDX-License-Identifier: Apache-2.0
/** What keeps a deleted Installation there until the nodes are clean. Layer: operator. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'

export const FINALIZER = 'operator.netplane.io/cleanup'

/** With ours in the list, or without it; others' stay. Nothing is written where it is so already. */
export async function setFinalizer(
  client: Pick<ApiClient, 'patch'>,
  { object, present, signal }: { readonly object: ApiObject; readonly present: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { finalizers, resourceVersion } = object.metadata
  const found: readonly unknown[] = Array.isArray(finalizers) ? finalizers : []
  if (found.includes(FINALIZER) === present) return
  const others = found.filter((one) => one !== FINALIZER)
  const wanted = present ? [...others, FINALIZER] : others
  try {
    // of the object as it was seen: a finalizer that another has added meanwhile is not lost
    await client.patch(namedOf(object), { metadata: { resourceVersion, finalizers: wanted } }, { type: 'merge', signal })
  } catch (thrown) {
    if (present || !isRefused(thrown, 'NotFound')) throw thrown
  }
}
