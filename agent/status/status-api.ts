// SPDX-License-Identifier: Apache-2.0
/** What status needs of the API client. Layer: agent/status. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'

export type StatusApi = Pick<ApiClient, 'get' | 'list' | 'create' | 'patch' | 'request'>

/** No caller waits for a request about status. */
export const TIMEOUT_MS = 10_000

/** One object, by the right to list them, which the source has already; undefined: there is none. */
export async function lookUp(
  api: Pick<StatusApi, 'list'>,
  { name, ...collection }: Named,
  signal: AbortSignal,
): Promise<ApiObject | undefined> {
  const [found] = await api.list(collection, { fieldSelector: `metadata.name=${name}`, signal, timeoutMs: TIMEOUT_MS })
  return found
}
