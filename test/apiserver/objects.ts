// SPDX-License-Identifier: Apache-2.0
/** Objects of an API server as tests look at them. Layer: test. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { objectPath, type ApiObject, type Named } from '#lib/api/resource.ts'

/** undefined: it is not there, or its kind is not. */
export async function found(client: ApiClient, named: Named): Promise<ApiObject | undefined> {
  return await getOrNone(client, named)
}

/** What is at a path of fields and places in lists. */
export function at(object: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined), object)
}

/** One of the account's own. `spec`: as of a TokenRequest. */
export async function tokenOf(client: ApiClient, account: Named, spec: object = {}): Promise<string> {
  const answer = await client.request({
    method: 'POST',
    path: objectPath(account, 'token'),
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [], expirationSeconds: 3600, ...spec } },
  })
  const token = at(answer, 'status', 'token')
  if (typeof token !== 'string') throw new Error('no token')
  return token
}
