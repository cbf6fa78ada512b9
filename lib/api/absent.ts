// SPDX-License-Identifier: Apache-2.0
/** Objects that may not be there, or whose kind the server does not know. Layer: lib/api. */
import type { CallOptions, ApiClient } from './client.ts'
import { ApiError } from './errors.ts'
import type { ApiObject, Collection, Named } from './resource.ts'

/** A server that does not know the group answers without a reason. */
export function isAbsent(thrown: unknown): thrown is ApiError {
  return thrown instanceof ApiError && thrown.status === 404
}

/** Undefined: it is not there. */
export async function getOrNone(client: Pick<ApiClient, 'get'>, named: Named, options: CallOptions = {}): Promise<ApiObject | undefined> {
  try {
    return await client.get(named, options)
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined
    throw thrown
  }
}

/** Empty where the server does not know the kind as well. */
export async function listOrNone(
  client: Pick<ApiClient, 'list'>,
  collection: Collection,
  options: CallOptions = {},
): Promise<readonly ApiObject[]> {
  try {
    return await client.list(collection, options)
  } catch (thrown) {
    if (isAbsent(thrown)) return []
    throw thrown
  }
}
