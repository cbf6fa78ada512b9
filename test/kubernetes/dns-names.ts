// SPDX-License-Identifier: Apache-2.0
/** What a name means in a cluster: services, and the pods behind those without an address. Layer: test. */
import { at, listAt, textAt } from '../../lab/raw.ts'
import { NO_SUCH_NAME, type Answer } from './dns-message.ts'

/** Reads an object of the API; undefined when there is none. */
export type Get = (path: string) => Promise<unknown>

const ZONE = '.svc.cluster.local'
const NOTHING: Answer = { addresses: [], code: NO_SUCH_NAME }

/** Asks the API anew each time: tests change what names mean. */
export async function lookUp(name: string, get: Get): Promise<Answer> {
  if (!name.endsWith(ZONE)) return NOTHING
  const parts = name.slice(0, -ZONE.length).split('.')
  const [namespace, service, host] = parts.toReversed()
  if (namespace === undefined || service === undefined || parts.length > 3) return NOTHING
  const found = await get(`/api/v1/namespaces/${namespace}/services/${service}`)
  if (found === undefined) return NOTHING
  if (textAt(found, 'spec.type') === 'ExternalName') return await aliasOf(textAt(found, 'spec.externalName') ?? '', get)
  if (textAt(found, 'spec.clusterIP') !== 'None' && host === undefined)
    return { addresses: texts(listAt(found, 'spec.clusterIPs')), code: 0 }
  const query = new URLSearchParams({ labelSelector: `kubernetes.io/service-name=${service}` })
  const slices = await get(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?${query.toString()}`)
  const all = at(found, 'spec.publishNotReadyAddresses') === true
  const endpoints = listAt(slices, 'items').flatMap((slice) => listAt(slice, 'endpoints'))
  const named = endpoints.filter((endpoint) => host === undefined || textAt(endpoint, 'hostname') === host)
  const ready = named.filter((endpoint) => all || at(endpoint, 'conditions.ready') !== false)
  if (host !== undefined && ready.length === 0) return NOTHING
  return { addresses: ready.flatMap((endpoint) => texts(listAt(endpoint, 'addresses'))), code: 0 }
}

async function aliasOf(alias: string, get: Get): Promise<Answer> {
  const target = await lookUp(alias.toLowerCase(), get)
  return { alias, addresses: target.addresses, code: 0 }
}

function texts(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string')
}
