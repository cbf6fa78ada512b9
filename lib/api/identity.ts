// SPDX-License-Identifier: Apache-2.0
/** Which cluster a server is of, and of which version it is. Layer: lib/api. */
import { isObject } from '../base/object.ts'
import type { ApiClient, CallOptions } from './client.ts'
import type { Named } from './resource.ts'

/** Each cluster has it. */
const SYSTEM: Named = { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' }

/** No other cluster has the same. */
export async function clusterUid(client: Pick<ApiClient, 'get'>, options: CallOptions = {}): Promise<string> {
  return (await client.get(SYSTEM, options)).metadata.uid ?? ''
}

/** "v1.34.1"; empty where the server does not say. */
export async function serverVersion(client: Pick<ApiClient, 'request'>, options: CallOptions = {}): Promise<string> {
  const answer = await client.request({ method: 'GET', path: '/version', ...options })
  return isObject(answer) && typeof answer['gitVersion'] === 'string' ? answer['gitVersion'] : ''
}
