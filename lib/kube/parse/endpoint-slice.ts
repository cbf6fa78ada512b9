// SPDX-License-Identifier: Apache-2.0
/** Raw EndpointSlice → model. Layer: lib/kube. */
import type { Sliced } from '../../base/async/slices.ts'
import { textNumber } from '../../base/hash.ts'
import { isV4 } from '../../base/ip.ts'
import type { Addr } from '../../base/ip.ts'
import { isObject } from '../../base/object.ts'
import type { Endpoint, EndpointHints, EndpointPort, EndpointSlice } from '../../model/endpoint-slice.ts'
import { endpointState } from '../../model/endpoint-slice.ts'
import {
  allInSlices,
  asRecord,
  each,
  elements,
  FieldError,
  flag,
  inside,
  NONE,
  oneOf,
  own,
  port,
  protocol,
  record,
  text,
  under,
  usableAddressesInSlices,
} from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { asReachable } from './special-addresses.ts'

type AddressType = EndpointSlice['addressType']

export function* parseEndpointSlice(input: ParseInput): Sliced<EndpointSlice> {
  const { raw, intern } = input
  const labels = inside(raw, 'metadata', (metadata) => record(metadata, 'labels'))
  const addressType = oneOf(raw, 'addressType', { words: ['IPv4', 'IPv6', 'FQDN'], absent: undefined })
  if (addressType === undefined) throw new FieldError('addressType', 'is missing')
  const ports = yield* allInSlices(raw, 'ports', (value) => endpointPort(asRecord(value), intern))
  const written = inside(raw, 'metadata', lastWrite)
  return {
    kind: 'EndpointSlice',
    namespace: input.namespace,
    name: input.name,
    ...serviceOf(labels, intern),
    addressType,
    ports,
    endpoints: addressType === 'FQDN' ? NONE : yield* endpointsOf(raw, addressType, input),
    ...written,
  }
}

function lastWrite(metadata: Raw): Pick<EndpointSlice, 'resourceVersion' | 'triggered'> {
  const resourceVersion = versionNumber(text(metadata, 'resourceVersion') ?? '')
  const triggered = triggerTime(record(metadata, 'annotations'))
  return { ...(resourceVersion === undefined ? {} : { resourceVersion }), ...(triggered === undefined ? {} : { triggered }) }
}

/** The API has them compared as decimal numbers; anything else says nothing. */
function versionNumber(version: string): number | undefined {
  return /^\d+$/.test(version) ? Number(version) : undefined
}

/** For measuring only: one that is no time is none. */
function triggerTime(annotations: Raw): number | undefined {
  const stamp = annotations['endpoints.kubernetes.io/last-change-trigger-time']
  const ms = typeof stamp === 'string' ? Date.parse(stamp) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

function serviceOf(labels: Raw, intern: (text: string) => string): Pick<EndpointSlice, 'service' | 'unserved'> {
  const name = text(labels, 'kubernetes.io/service-name') ?? ''
  if (name === '') return { service: undefined }
  const others = ['service.kubernetes.io/headless', 'service.kubernetes.io/service-proxy-name']
  return others.some((label) => Object.hasOwn(labels, label)) ? { service: undefined, unserved: intern(name) } : { service: intern(name) }
}

function endpointPort(raw: Raw, intern: (text: string) => string): EndpointPort | undefined {
  const number = port(raw, 'port')
  return number === undefined ? undefined : { name: intern(text(raw, 'name') ?? ''), protocol: protocol(raw), port: number }
}

/** Without those whose address cannot be used. */
function endpointsOf(raw: Raw, addressType: AddressType, input: ParseInput): Sliced<readonly Endpoint[]> {
  return usableAddressesInSlices(raw, 'endpoints', {
    read: (value) => endpoint(asRecord(value), addressType, input),
    refuse: input.refuse,
  })
}

function endpoint(raw: Raw, addressType: AddressType, { intern }: ParseInput): Endpoint {
  const addr = addressOf(raw, addressType)
  const nodeName = text(raw, 'nodeName')
  const zone = text(raw, 'zone')
  return {
    addr,
    pod: podOf(own(raw, 'targetRef')),
    state: inside(raw, 'conditions', conditions),
    nodeName: nodeName === undefined ? undefined : intern(nodeName),
    zone: zone === undefined ? undefined : intern(zone),
    // most have none, and there are hundreds of thousands of endpoints
    hints: own(raw, 'hints') === undefined ? undefined : inside(raw, 'hints', (value) => hints(value, intern)),
  }
}

/** The first: no one looks at the others. */
function addressOf(raw: Raw, addressType: AddressType): Addr {
  const said = elements(raw, 'addresses')
  if (said.length === 0) throw new FieldError('addresses', 'must have at least one')
  return under('addresses[0]', () => {
    const addr = asReachable(said[0])
    if (isV4(addr) !== (addressType === 'IPv4')) throw new FieldError('', `must be of family ${addressType}`, true)
    return addr
  })
}

/** A pod that is made again under its name is another one. */
function podOf(target: unknown): number {
  if (!isObject(target)) return 0
  const { uid, name } = target
  return typeof uid === 'string' && uid !== '' ? textNumber(uid) : typeof name === 'string' ? textNumber(name) : 0
}

function hints(raw: Raw, intern: (text: string) => string): EndpointHints | undefined {
  const names = (key: string): readonly string[] =>
    each(raw, key, (value) => {
      const name = text(asRecord(value), 'name')
      if (name === undefined) throw new FieldError('name', 'is missing')
      return intern(name)
    })
  const [nodes, zones] = [names('forNodes'), names('forZones')]
  return nodes.length === 0 && zones.length === 0 ? undefined : { nodes, zones }
}

/** Unknown ready counts as ready, unknown serving as ready says, unknown terminating as not: the API's own reading. */
function conditions(raw: Raw): Endpoint['state'] {
  const ready = flag(raw, 'ready') ?? true
  return endpointState(ready, flag(raw, 'serving') ?? ready, flag(raw, 'terminating') ?? false)
}
