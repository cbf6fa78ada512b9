// SPDX-License-Identifier: Apache-2.0
/** What objects are rendered from, and what they have in common. Layer: lib/render (pure). */
import type { Computed } from './computed.ts'

/** The DaemonSet, its container, account and roles. */
export const NODE = 'netplane-node'

/** Where pods read the endpoint that was not given to them; in their own namespace. */
export const ENDPOINT_MAP = 'cluster-services-endpoint'

export interface Endpoint {
  readonly host: string
  readonly port: string
}

export interface RenderInput {
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** undefined: pods read it from the config map of their namespace, where there is one */
  readonly endpoint: Endpoint | undefined
}

/** Variables of a container by which it finds the API server. `endpoint` undefined: by the config map, where there is
 * one. */
export function endpointVariables(endpoint: Endpoint | undefined): readonly object[] {
  const asked = (key: string): object => ({ name: key, valueFrom: { configMapKeyRef: { name: ENDPOINT_MAP, key, optional: true } } })
  if (endpoint === undefined) return [asked('CLUSTER_SERVICE_HOST'), asked('CLUSTER_SERVICE_PORT')]
  return [
    { name: 'CLUSTER_SERVICE_HOST', value: endpoint.host },
    { name: 'CLUSTER_SERVICE_PORT', value: endpoint.port },
  ]
}

export function labelsOf(name: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'netplane' }
}

export function pullSecrets({ computed: { imagePullSecrets } }: RenderInput): object {
  return imagePullSecrets.length === 0 ? {} : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }
}
