// SPDX-License-Identifier: Apache-2.0
/** Changes of services and of their endpoints, at random. Layer: soak (pure). */
import type { EndpointSpec, SliceSpec } from '../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type PortSpec, type ServiceSpec } from '../../testkit/lab/test-service.ts'
import { ANCHORS, NODES, OTHERS, VISITORS } from '../cluster.ts'
import type { Random } from '../random.ts'

/** A second port, whose number of the pod is another. */
const SECOND: readonly PortSpec[] = BOTH_PROTOCOLS.map((port) => ({ ...port, name: `${port.name}-2`, port: 81, targetPort: 8081 }))
const PORTS: readonly (readonly PortSpec[])[] = [BOTH_PROTOCOLS, [...BOTH_PROTOCOLS, ...SECOND], SECOND, BOTH_PROTOCOLS.slice(1)]

/** No flow to one of its first endpoints may notice: they are ready, or leave gracefully. */
export function calm(random: Random): Partial<ServiceSpec> {
  const ports = random.pick(PORTS.slice(0, 2))
  const endpoints = [...ANCHORS.map((pod) => (random.chance(0.7) ? pod : leaving(pod))), ...some(random, OTHERS)]
  return {
    ports,
    slices: slices(random, { ports, endpoints }),
    more: { ...affinity(random), ...random.pick([{}, { externalIPs: ['203.0.113.1'] }]) },
  }
}

/** All of a service's fields, and any endpoints, of pods that may not be there. */
export function wild(random: Random, index: number): Partial<ServiceSpec> {
  // another service may have the same one, another port of this one must not
  const first = random.below(8)
  const ports = random.pick(PORTS).map((port, at) => (random.chance(0.1) ? { ...port, nodePort: 30_400 + ((first + at) % 8) } : port))
  const type = random.weighted([
    [3, 'ClusterIP'],
    [4, 'NodePort'],
    [4, 'LoadBalancer'],
    [1, 'ExternalName'],
  ] as const)
  const endpoints = some(random, [...ANCHORS, ...OTHERS, ...VISITORS])
  const families = random.pick([[4, 6], [6, 4], [4], [6]] as const)
  return {
    type,
    ports,
    families,
    labels: labels(random),
    slices: slices(random, { ports, endpoints }),
    more: more(random, { type, families, index }),
  }
}

/** The first endpoints, in states in which new connections find one. */
export function anchored(random: Random): Partial<ServiceSpec> {
  const endpoints = ANCHORS.map((pod) => (random.chance(0.5) ? pod : leaving(pod)))
  return { slices: slices(random, { ports: BOTH_PROTOCOLS, endpoints }) }
}

function leaving(pod: string): EndpointSpec {
  return { pod, ready: false, serving: true, terminating: true }
}

function some(random: Random, pods: readonly string[]): EndpointSpec[] {
  return random.some(pods).map((pod) => {
    const state = random.weighted<EndpointSpec>([
      [5, pod],
      [2, leaving(pod)],
      [1, { pod, ready: false, serving: false, terminating: true }],
      [1, { pod, ready: false, serving: false }],
      [1, { pod, zones: [random.pick(['east', 'west'])], nodes: [random.pick(NODES)] }],
    ])
    return state
  })
}

/** One slice or several; while an endpoint moves from one to another it is in both. */
function slices(random: Random, whole: { readonly ports: readonly PortSpec[]; readonly endpoints: readonly EndpointSpec[] }): SliceSpec[] {
  const ports = whole.ports.flatMap(({ name, protocol, targetPort }) =>
    typeof targetPort === 'number' ? [{ name, protocol, port: targetPort }] : [],
  )
  const count = random.pick([1, 1, 2, 3])
  const parts = Array.from({ length: count }, (): EndpointSpec[] => [])
  for (const endpoint of whole.endpoints) {
    const at = random.below(count)
    parts[at]?.push(endpoint)
    if (random.chance(0.1)) parts[(at + 1) % count]?.push(endpoint)
  }
  return parts.map((endpoints) => ({ ports, endpoints }))
}

function affinity(random: Random): object {
  if (random.chance(0.6)) return { sessionAffinity: 'None' }
  const timeoutSeconds = random.pick([60, 3600, 10_800])
  return { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } }
}

type About = Pick<ServiceSpec, 'type' | 'families'> & { readonly index: number }

function more(random: Random, { type, families, index }: About): object {
  if (type === 'ExternalName') return {}
  const policy = (): string => random.pick(['Cluster', 'Local'])
  const ofFamilies = (texts: readonly string[]): string[] => texts.filter((text) => families.includes(text.includes(':') ? 6 : 4))
  const last = 100 + random.below(4)
  const ranges = ofFamilies(random.some(['172.29.0.0/16', 'fd00:29::/64', '198.51.100.0/24']))
  return {
    internalTrafficPolicy: policy(),
    ...affinity(random),
    ...(type === 'ClusterIP' ? {} : { externalTrafficPolicy: policy() }),
    ...(type === 'LoadBalancer' ? { healthCheckNodePort: 32_000 + index, loadBalancerSourceRanges: ranges } : {}),
    // few addresses, so that services get into each other's way
    ...(random.chance(0.3) ? { externalIPs: ofFamilies([`203.0.113.${last}`, `2001:db8:113::${last}`]) } : {}),
    ...(random.chance(0.2) ? { publishNotReadyAddresses: true } : {}),
  }
}

function labels(random: Random): Readonly<Record<string, string>> {
  return random.weighted<Readonly<Record<string, string>>>([
    [8, {}],
    [1, { 'service.kubernetes.io/service-proxy-name': 'another' }],
    [1, { 'service.kubernetes.io/headless': '' }],
  ])
}
