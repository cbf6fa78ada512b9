// SPDX-License-Identifier: Apache-2.0
/** What a name means in a cluster: services, and the pods behind those without an address. Layer: testkit. */
import { at, listAt, numberAt, textAt } from '../../lab/raw.ts'
import { NO_SUCH_NAME, type Answer, type Place } from './dns-message.ts'

/** Reads an object of the API; undefined when there is none. */
export type Get = (path: string) => Promise<unknown>

const ZONE = '.svc.cluster.local'
const REVERSE = '.in-addr.arpa'
const NOTHING: Answer = { addresses: [], code: NO_SUCH_NAME }

/** Asks the API each time: tests change what names mean. */
export async function lookUp(name: string, get: Get): Promise<Answer> {
  if (name.endsWith(REVERSE)) return await pointerOf(name.slice(0, -REVERSE.length).split('.').toReversed().join('.'), get)
  if (!name.endsWith(ZONE)) return NOTHING
  const parts = name.slice(0, -ZONE.length).split('.')
  const [namespace, service, host, port] = parts.toReversed()
  if (namespace === undefined || service === undefined || parts.length > 4) return NOTHING
  const found = await get(`/api/v1/namespaces/${namespace}/services/${service}`)
  if (found === undefined) return NOTHING
  if (port !== undefined) return await placesOf(found, { port: port.slice(1), protocol: (host ?? '').slice(1) }, get)
  if (textAt(found, 'spec.type') === 'ExternalName') return await aliasOf(textAt(found, 'spec.externalName') ?? '', get)
  if (!isHeadless(found) && host === undefined) return { addresses: texts(listAt(found, 'spec.clusterIPs')), code: 0 }
  const all = (await readyEndpoints(found, get)).filter((endpoint) => host === undefined || textAt(endpoint, 'hostname') === host)
  if (host !== undefined && all.length === 0) return NOTHING
  return { addresses: all.flatMap((endpoint) => texts(listAt(endpoint, 'addresses'))), code: 0 }
}

/** "_http._tcp" before a service's name: the service itself, or the pods with a name behind one without an address. */
async function placesOf(service: unknown, wanted: { readonly port: string; readonly protocol: string }, get: Get): Promise<Answer> {
  const [port] = listAt(service, 'spec.ports').filter(
    (entry) => textAt(entry, 'name') === wanted.port && textAt(entry, 'protocol')?.toLowerCase() === wanted.protocol,
  )
  if (port === undefined) return NOTHING
  const place = (host: string, key: string): Place => ({ host, port: numberAt(port, key) ?? numberAt(port, 'port') ?? 0 })
  if (!isHeadless(service)) return { addresses: [], places: [place(nameOf(service), 'port')], code: 0 }
  const hosts = (await readyEndpoints(service, get)).map((endpoint) => textAt(endpoint, 'hostname'))
  const names = hosts.map((host) => (host === undefined ? nameOf(service) : `${host}.${nameOf(service)}`))
  return { addresses: [], places: [...new Set(names)].map((name) => place(name, 'targetPort')), code: 0 }
}

async function pointerOf(address: string, get: Get): Promise<Answer> {
  const services = listAt(await get('/api/v1/services'), 'items')
  const found = services.find((service) => listAt(service, 'spec.clusterIPs').includes(address))
  return found === undefined ? NOTHING : { addresses: [], pointer: nameOf(found), code: 0 }
}

async function readyEndpoints(service: unknown, get: Get): Promise<readonly unknown[]> {
  const query = new URLSearchParams({ labelSelector: `kubernetes.io/service-name=${textAt(service, 'metadata.name') ?? ''}` })
  const path = `/apis/discovery.k8s.io/v1/namespaces/${textAt(service, 'metadata.namespace') ?? ''}/endpointslices`
  const endpoints = listAt(await get(`${path}?${query.toString()}`), 'items').flatMap((slice) => listAt(slice, 'endpoints'))
  const all = at(service, 'spec.publishNotReadyAddresses') === true
  return endpoints.filter((endpoint) => all || at(endpoint, 'conditions.ready') !== false)
}

async function aliasOf(alias: string, get: Get): Promise<Answer> {
  const target = await lookUp(alias.toLowerCase(), get)
  return { alias, addresses: target.addresses, code: 0 }
}

function isHeadless(service: unknown): boolean {
  return textAt(service, 'spec.clusterIP') === 'None'
}

function nameOf(service: unknown): string {
  return `${textAt(service, 'metadata.name') ?? ''}.${textAt(service, 'metadata.namespace') ?? ''}${ZONE}`
}

function texts(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string')
}
