// SPDX-License-Identifier: Apache-2.0
/** Raw Service → model. Layer: lib/kube. */
import type { Sliced } from '../../base/async/slices.ts'
import { formatCidr, isV4 } from '../../base/ip.ts'
import type { Addr, Cidr, Protocol } from '../../base/ip.ts'
import type { BackendSelection, Family, NotServed, Service, ServicePort } from '../../model/service.ts'
import {
  allInSlices,
  asAddr,
  asCidr,
  asRecord,
  each,
  elements,
  FieldError,
  flag,
  inside,
  insideInSlices,
  integer,
  NONE,
  oneOf,
  port,
  protocol,
  record,
  refuseUnder,
  text,
  under,
  usableAddress,
  usableAddresses,
  usableInSlices,
} from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { asReachable } from './special-addresses.ts'

const DEFAULT_AFFINITY_SECONDS = 10_800
const MAX_AFFINITY_SECONDS = 86_400

/** A service may have as many ports and addresses as an object has room for. */
export function* parseService(input: ParseInput): Sliced<Service> {
  const { labels, annotations, created } = inside(input.raw, 'metadata', (metadata) => ({
    labels: record(metadata, 'labels'),
    annotations: record(metadata, 'annotations'),
    created: timeOf(metadata['creationTimestamp']),
  }))
  const loadBalancerIPs = yield* insideInSlices(input.raw, 'status', (status) =>
    insideInSlices(status, 'loadBalancer', (balancer) => loadBalancerAddresses(balancer, refuseUnder(input, 'status.loadBalancer'))),
  )
  return yield* insideInSlices(input.raw, 'spec', function* (spec): Sliced<Service> {
    const type = oneOf(spec, 'type', { words: ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'], absent: 'ClusterIP' })
    const refuse = refuseUnder(input, 'spec')
    const clusterIPs = clusterAddresses(spec, refuse)
    const notServed = whyNotServed({ type, headless: clusterIPs === 'None', labels, annotations })
    const service: Service = {
      kind: 'Service',
      namespace: input.namespace,
      name: input.name,
      type,
      notServed,
      families: clusterIPs === 'None' ? NONE : familiesOf(spec, clusterIPs),
      clusterIPs: clusterIPs === 'None' ? NONE : clusterIPs,
      externalIPs: yield* usableInSlices(spec, 'externalIPs', { read: asReachable, refuse }),
      loadBalancerIPs,
      loadBalancerSourceRanges: yield* sourceRanges(spec, refuse),
      backendSelection: backendSelection(annotations, input),
      ports: yield* servicePorts(spec, { type, refuse, intern: input.intern, required: notServed === undefined }),
      externalTrafficPolicy: trafficPolicy(spec, 'externalTrafficPolicy'),
      internalTrafficPolicy: trafficPolicy(spec, 'internalTrafficPolicy'),
      affinitySeconds: affinity(spec),
      publishNotReadyAddresses: flag(spec, 'publishNotReadyAddresses') ?? false,
      healthCheckNodePort: integer(spec, 'healthCheckNodePort') === 0 ? undefined : port(spec, 'healthCheckNodePort'),
      created,
    }
    if (notServed === undefined) yield* sayUnusable(service, refuse)
    return service
  })
}

/** The server's own field: what is no time, as in manifests that tools have written, says nothing. */
function timeOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** What is taken as it is, but is hardly meant so. */
function* sayUnusable({ clusterIPs, families, loadBalancerSourceRanges = [] }: Service, refuse: (error: FieldError) => void): Sliced<void> {
  if (clusterIPs.length === 0) refuse(new FieldError('clusterIP', 'is missing: the service has no cluster address'))
  for (const cidr of loadBalancerSourceRanges) {
    if (!families.includes(familyOf(cidr.addr)))
      refuse(new FieldError('loadBalancerSourceRanges', `${formatCidr(cidr)} is of a family that the service does not have`))
    yield
  }
}

function whyNotServed(of: {
  readonly type: Service['type']
  readonly headless: boolean
  readonly labels: Raw
  readonly annotations: Raw
}): NotServed | undefined {
  if (of.type === 'ExternalName') return 'external-name'
  if (of.headless || Object.hasOwn(of.labels, 'service.kubernetes.io/headless')) return 'headless'
  if (Object.hasOwn(of.labels, 'service.kubernetes.io/service-proxy-name')) return 'other-proxy'
  return text(of.annotations, 'netplane.io/nat-exclude-service') === 'true' ? 'excluded' : undefined
}

/** A range that cannot be read lets no client in, so that a slip of the pen does not open the service to all. */
function* sourceRanges(spec: Raw, refuse: (error: FieldError) => void): Sliced<readonly Cidr[] | undefined> {
  if (elements(spec, 'loadBalancerSourceRanges').length === 0) return undefined
  return yield* usableInSlices(spec, 'loadBalancerSourceRanges', {
    read: (value) => asCidr(typeof value === 'string' ? value.trim() : value),
    refuse,
  })
}

const SELECTION = 'netplane.io/backend-selection'

function backendSelection(annotations: Raw, input: ParseInput): BackendSelection | undefined {
  const word = text(annotations, SELECTION)
  if (word === undefined || word === 'Random' || word === 'Maglev') return word
  input.refuse(new FieldError(`metadata.annotations['${SELECTION}']`, 'must be Random or Maglev'))
  return undefined
}

/** Without those that cannot be read. */
function clusterAddresses(spec: Raw, refuse: (error: FieldError) => void): readonly Addr[] | 'None' {
  const single = text(spec, 'clusterIP') ?? ''
  const plural = each(spec, 'clusterIPs', (value) => value === 'None')
  if (single === 'None' || plural.includes(true)) return 'None'
  const use = { read: asAddr, refuse }
  if (plural.length === 0) return single === '' ? NONE : usableAddress('clusterIP', single, use)
  const addrs = usableAddresses(spec, 'clusterIPs', use)
  if (addrs.length > 2 || (addrs.length === 2 && familyOf(addrs[0]) === familyOf(addrs[1])))
    throw new FieldError('clusterIPs', 'must be at most one of each family')
  return addrs
}

function familyOf(addr: Addr | undefined): Family {
  return addr === undefined || isV4(addr) ? 'IPv4' : 'IPv6'
}

const IPV4_ONLY: readonly Family[] = Object.freeze(['IPv4'])
const IPV6_ONLY: readonly Family[] = Object.freeze(['IPv6'])
const BOTH: readonly Family[] = Object.freeze(['IPv4', 'IPv6'])

/** Those of the cluster addresses; a manifest that has none may say them itself. */
function familiesOf(spec: Raw, clusterIPs: readonly Addr[]): readonly Family[] {
  const said = each(spec, 'ipFamilies', asFamily)
  const families = new Set<Family>(clusterIPs.length > 0 ? clusterIPs.map(familyOf) : said)
  if (families.size === 2) return BOTH
  return families.has('IPv6') ? IPV6_ONLY : IPV4_ONLY
}

function asFamily(value: unknown): Family {
  if (value === 'IPv4' || value === 'IPv6') return value
  throw new FieldError('', 'must be IPv4 or IPv6')
}

/** Addresses in mode Proxy are for the load balancer itself, as in upstream's proxy. */
function loadBalancerAddresses(balancer: Raw, refuse: (error: FieldError) => void): Sliced<readonly Addr[]> {
  return usableInSlices(balancer, 'ingress', {
    read: (value) => {
      const ingress = asRecord(value)
      const ip = text(ingress, 'ip') ?? ''
      const mode = oneOf(ingress, 'ipMode', { words: ['VIP', 'Proxy'], absent: 'VIP' })
      if (ip === '' || mode === 'Proxy') return undefined
      return under('ip', () => asReachable(ip))
    },
    refuse,
  })
}

interface PortContext {
  readonly type: Service['type']
  readonly required: boolean
  readonly refuse: (error: FieldError) => void
  readonly intern: (text: string) => string
}

function* servicePorts(spec: Raw, context: PortContext): Sliced<readonly ServicePort[]> {
  const all = yield* allInSlices(spec, 'ports', (value) => servicePort(asRecord(value), context))
  if (all.length === 0 && context.required) throw new FieldError('ports', 'must have at least one')
  yield* refuseTwins(all)
  for (const [at, entry] of all.entries()) {
    if (entry.protocol === 'SCTP') context.refuse(new FieldError(`ports[${at}].protocol`, 'SCTP is not supported'))
    yield
  }
  return all.filter((entry) => entry.protocol !== 'SCTP')
}

function servicePort(raw: Raw, context: PortContext): ServicePort {
  const number = port(raw, 'port')
  if (number === undefined) throw new FieldError('port', 'is missing')
  const name = text(raw, 'name') ?? ''
  if (name !== '' && (name.length > 63 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)))
    throw new FieldError('name', 'must be lower-case letters, digits and "-"')
  const nodePort = raw['nodePort'] === 0 ? undefined : port(raw, 'nodePort')
  if (nodePort !== undefined && context.type !== 'NodePort' && context.type !== 'LoadBalancer')
    throw new FieldError('nodePort', `must not be set when type is ${context.type}`)
  return { name: context.intern(name), protocol: protocol(raw), port: number, nodePort, targetPort: targetPort(raw, context) ?? number }
}

function targetPort(raw: Raw, context: PortContext): number | string | undefined {
  const value = raw['targetPort']
  if (typeof value === 'string') return value === '' ? undefined : context.intern(value)
  return value === 0 ? undefined : port(raw, 'targetPort')
}

/** Names, port numbers and node ports must tell ports apart. */
function* refuseTwins(ports: readonly ServicePort[]): Sliced<void> {
  const seen = new Set<string>()
  const once = (key: string, path: string, reason: string): void => {
    if (seen.has(key)) throw new FieldError(path, reason)
    seen.add(key)
  }
  for (const [at, entry] of ports.entries()) {
    if (entry.name === '' && ports.length > 1) throw new FieldError(`ports[${at}].name`, 'is missing: needed when there are several ports')
    once(`name ${entry.name}`, `ports[${at}].name`, 'is used twice')
    once(`port ${twinKey(entry.protocol, entry.port)}`, `ports[${at}].port`, 'is used twice for this protocol')
    if (entry.nodePort !== undefined)
      once(`nodePort ${twinKey(entry.protocol, entry.nodePort)}`, `ports[${at}].nodePort`, 'is used twice for this protocol')
    yield
  }
}

function twinKey(protocolName: Protocol, number: number): string {
  return `${protocolName} ${number}`
}

function trafficPolicy(spec: Raw, key: string): 'Cluster' | 'Local' {
  return oneOf(spec, key, { words: ['Cluster', 'Local'], absent: 'Cluster' })
}

function affinity(spec: Raw): number | undefined {
  if (oneOf(spec, 'sessionAffinity', { words: ['None', 'ClientIP'], absent: 'None' }) === 'None') return undefined
  return inside(spec, 'sessionAffinityConfig', (config) =>
    inside(config, 'clientIP', (clientIP) => {
      const seconds = integer(clientIP, 'timeoutSeconds') ?? DEFAULT_AFFINITY_SECONDS
      if (seconds < 1 || seconds > MAX_AFFINITY_SECONDS) throw new FieldError('timeoutSeconds', `must be 1..${MAX_AFFINITY_SECONDS}`)
      return seconds
    }),
  )
}
