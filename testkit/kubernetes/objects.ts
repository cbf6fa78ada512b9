// SPDX-License-Identifier: Apache-2.0
/** Manifests as requests that make them in an API server. Layer: testkit (pure). */

export interface ApiRequest {
  readonly method: 'POST' | 'PATCH'
  readonly path: string
  /** of the body */
  readonly type: string
  readonly body: string
}

const COLLECTIONS: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  Node: 'nodes',
  Service: 'services',
  Pod: 'pods',
  EndpointSlice: 'endpointslices',
}
const CLUSTER_WIDE = new Set(['Namespace', 'Node'])
/** Their status is dropped from what is created. */
const OWN_STATUS = new Set(['Service', 'Pod'])

/** None for kinds that Kubernetes itself has no use for. */
export function requestsFor(object: unknown): ApiRequest[] {
  const kind = text(object, 'kind')
  const collection = COLLECTIONS[kind]
  if (collection === undefined) return []
  const metadata = field(object, 'metadata')
  const namespace = CLUSTER_WIDE.has(kind) ? '' : `/namespaces/${text(metadata, 'namespace') || 'default'}`
  const path = `${groupPath(text(object, 'apiVersion'))}${namespace}/${collection}`
  const create = { method: 'POST', path, type: 'application/json', body: JSON.stringify(object) } as const
  const status = field(object, 'status')
  if (status === undefined || !OWN_STATUS.has(kind)) return [create]
  const patch = { method: 'PATCH', path: `${path}/${text(metadata, 'name')}/status`, type: 'application/merge-patch+json' } as const
  return [create, { ...patch, body: JSON.stringify({ status }) }]
}

function groupPath(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
}

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}

function text(value: unknown, key: string): string {
  const found = field(value, key)
  return typeof found === 'string' ? found : ''
}
