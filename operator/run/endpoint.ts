// SPDX-License-Identifier: Apache-2.0
/** Where the API server is without any service, by the config map of the administrator. Layer: operator (pure). */
import { isIP } from 'node:net'
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { ENDPOINT_MAP, type Endpoint } from '#lib/render/input.ts'
import type { Cause } from '#lib/control/rollout.ts'

const HOST_NAME = /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*\.?$/

/** `endpoint` undefined without `wrong`: there is no such map. */
export interface EndpointRead {
  readonly endpoint: Endpoint | undefined
  readonly wrong?: Cause
}

export function readEndpoint(map: ApiObject | undefined): EndpointRead {
  if (map === undefined) return { endpoint: undefined }
  const data = isObject(map['data']) ? map['data'] : {}
  const host = textOf(data['CLUSTER_SERVICE_HOST'])
  const port = textOf(data['CLUSTER_SERVICE_PORT'])
  const wrong = (field: string, why: string): EndpointRead => ({
    endpoint: undefined,
    wrong: { reason: 'EndpointInvalid', message: `config map ${map.metadata.namespace ?? ''}/${ENDPOINT_MAP}: data.${field} ${why}` },
  })
  if (host === '') return wrong('CLUSTER_SERVICE_HOST', 'is missing')
  if (/^\[.*\]$/.test(host)) return wrong('CLUSTER_SERVICE_HOST', `must be without brackets: ${host.slice(1, -1)}`)
  if (host.includes('://')) return wrong('CLUSTER_SERVICE_HOST', 'must be a name or an address, without https://')
  if (isIP(host) === 0 && !HOST_NAME.test(host))
    return wrong('CLUSTER_SERVICE_HOST', `${JSON.stringify(host)} is neither a name nor an address`)
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    return wrong('CLUSTER_SERVICE_PORT', port === '' ? 'is missing' : `${JSON.stringify(port)} is no port`)
  return { endpoint: { host, port } }
}

/** What the pods of the DaemonSet ask: it stays in use while the map says nothing, or nothing usable. */
export function endpointInUse(daemonSet: ApiObject | undefined): Endpoint | undefined {
  const text = JSON.stringify(daemonSet?.['spec'] ?? {})
  const valueOf = (name: string): string | undefined => new RegExp(`"name":"${name}","value":"([^"]+)"`).exec(text)?.[1]
  const [host, port] = [valueOf('CLUSTER_SERVICE_HOST'), valueOf('CLUSTER_SERVICE_PORT')]
  return host === undefined || port === undefined ? undefined : { host, port }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}
