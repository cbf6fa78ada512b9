// SPDX-License-Identifier: Apache-2.0
/** Changes of objects → updates for the policy compiler. Layer: agent/compile (pure). */
import { protocolNumber } from '#lib/base/ip.ts'
import { hostEndpointLabels, namespaceProfile, networkSetLabels, podLabels, serviceAccountProfile } from '#lib/model/effective-labels.ts'
import type { LabelSources } from '#lib/model/effective-labels.ts'
import type { Node } from '#lib/model/node.ts'
import { hasOwnAddresses } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { HostEndpoint, NetworkSet, Policy } from '#lib/model/policy.ts'
import { nameKey, refText } from '#lib/model/ref.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { isLocalWorkload } from '../addresses.ts'
import { portNumber, type PolicyEndpoint, type PolicyUpdate, type SlicePeers } from './policy-update.ts'

export class PolicyFeed {
  readonly #node: string
  /** by policy or profile: services that its rules speak of, if they do */
  readonly #services = new Map<string, ReadonlySet<string>>()

  /** `node` is this node's name */
  constructor(node: string) {
    this.#node = node
  }

  /** Everything there is. */
  *all(snapshot: Snapshot): Iterable<PolicyUpdate> {
    for (const [key, value] of snapshot.tiers) yield { kind: 'tier', key, value }
    for (const [key, value] of snapshot.profiles) yield { kind: 'profile', key, value }
    for (const [key, value] of snapshot.policies) yield { kind: 'policy', key, value }
    for (const set of snapshot.networkSets.values()) yield setUpdate(set, snapshot)
    const ruled = [...snapshot.policies.values(), ...snapshot.profiles.values()]
    for (const key of new Set(ruled.flatMap((one) => [...this.#speaksOf(refText(one), one)]))) yield serviceUpdate(key, snapshot)
    for (const node of snapshot.nodes.values()) yield nodeUpdate(node.name, node)
    for (const endpoint of snapshot.hostEndpoints.values()) yield this.#hostUpdate(endpoint, snapshot)
    for (const pod of snapshot.pods.values()) yield this.#podUpdate(pod, snapshot)
  }

  /** What these changes, which are in the snapshot already, make different. */
  *changes(changes: readonly ObjectChange[], snapshot: Snapshot): Iterable<PolicyUpdate> {
    // a service of many slices is made once, however many of them have changed
    const services = new Set<string>()
    for (const change of changes)
      if (change.kind === 'EndpointSlice') for (const service of this.#servicesOf(change)) services.add(service)
      else yield* this.#of(change, snapshot)
    for (const service of services) yield serviceUpdate(service, snapshot)
  }

  /** Those that rules speak of. */
  #servicesOf({ before, after }: Extract<ObjectChange, { readonly kind: 'EndpointSlice' }>): readonly string[] {
    return [before, after].flatMap((slice) => {
      const service = slice && `${slice.namespace}/${slice.service ?? slice.unserved ?? ''}`
      return service !== undefined && this.#isSpokenOf(service) ? [service] : []
    })
  }

  *#of(change: ObjectChange, snapshot: Snapshot): Iterable<PolicyUpdate> {
    const name = change.after ?? change.before
    if (name === undefined) return
    switch (change.kind) {
      case 'Pod':
        yield change.after === undefined ? gone(change.before) : this.#podUpdate(change.after, snapshot)
        return
      case 'Node':
        yield nodeUpdate(name.name, change.after)
        return
      case 'HostEndpoint':
        yield change.after === undefined ? gone(change.before) : this.#hostUpdate(change.after, snapshot)
        return
      case 'NetworkSet':
      case 'GlobalNetworkSet':
        yield change.after === undefined ? { kind: 'set', key: refText(name), value: undefined } : setUpdate(change.after, snapshot)
        return
      case 'Tier':
        yield { kind: 'tier', key: name.name, value: change.after }
        return
      case 'Profile':
        for (const key of this.#speaksOf(refText(name), change.after)) yield serviceUpdate(key, snapshot)
        yield { kind: 'profile', key: name.name, value: change.after }
        yield* this.#heirs((pod) => profilesOf(pod).includes(name.name), snapshot)
        for (const endpoint of snapshot.hostEndpoints.values()) yield this.#hostUpdate(endpoint, snapshot)
        return
      case 'ServiceAccount':
        yield* this.#heirs((pod) => pod.namespace === name.namespace && pod.serviceAccount === name.name, snapshot)
        return
      case 'Namespace':
        for (const set of snapshot.networkSets.values()) if (set.namespace === name.name) yield setUpdate(set, snapshot)
        yield* this.#heirs((pod) => pod.namespace === name.name, snapshot)
        return
      case 'EndpointSlice':
      case 'Service':
      case 'IPPool':
      case 'FelixConfiguration':
      case 'ClusterInformation':
        return
      default:
        for (const key of this.#speaksOf(refText(name), change.after)) yield serviceUpdate(key, snapshot)
        yield { kind: 'policy', key: refText(name), value: change.after }
        return
    }
  }

  /** The services that rules of `after`, which is in the place of `ref` now, speak of. */
  #speaksOf(ref: string, after: Rules | undefined): ReadonlySet<string> {
    const services = servicesIn(after)
    if (services.size === 0) this.#services.delete(ref)
    else this.#services.set(ref, services)
    return services
  }

  /** What becomes of other services is nothing to rules. */
  #isSpokenOf(service: string): boolean {
    for (const services of this.#services.values()) if (services.has(service)) return true
    return false
  }

  /** Pods that inherit labels of what has changed. */
  *#heirs(has: (pod: Pod) => boolean, snapshot: Snapshot): Iterable<PolicyUpdate> {
    for (const pod of snapshot.pods.values()) if (has(pod)) yield this.#podUpdate(pod, snapshot)
  }

  #podUpdate(pod: Pod, from: LabelSources): PolicyUpdate {
    const value: PolicyEndpoint | undefined = hasOwnAddresses(pod)
      ? {
          kind: 'pod',
          labels: podLabels(pod, from),
          addrs: pod.podIPs,
          ports: pod.ports,
          profiles: profilesOf(pod),
          local: isLocalWorkload(pod, this.#node),
        }
      : undefined
    return { kind: 'endpoint', key: refText(pod), value }
  }

  #hostUpdate(endpoint: HostEndpoint, from: LabelSources): PolicyUpdate {
    const { ports, profiles, expectedIPs: addrs } = endpoint
    const labels = hostEndpointLabels(endpoint, from)
    const named = endpoint.interfaceName === undefined ? {} : { interfaceName: endpoint.interfaceName }
    const value = { kind: 'host' as const, labels, addrs, ports, profiles, local: endpoint.node === this.#node, ...named }
    return { kind: 'endpoint', key: refText(endpoint), value }
  }
}

function gone(endpoint: Pod | HostEndpoint | undefined): PolicyUpdate {
  return { kind: 'endpoint', key: endpoint === undefined ? '' : refText(endpoint), value: undefined }
}

function profilesOf(pod: Pod): readonly string[] {
  return [namespaceProfile(pod.namespace), serviceAccountProfile(pod.namespace, pod.serviceAccount)]
}

function nodeUpdate(name: string, node: Node | undefined): PolicyUpdate {
  const value = node && { kind: 'node' as const, labels: node.labels, addrs: node.addresses, ports: [], profiles: [], local: false }
  return { kind: 'endpoint', key: `Node/${name}`, value }
}

function setUpdate(set: NetworkSet, from: LabelSources): PolicyUpdate {
  return { kind: 'set', key: refText(set), value: { labels: networkSetLabels(set, from), nets: set.nets } }
}

function serviceUpdate(key: string, snapshot: Snapshot): PolicyUpdate {
  const slices = snapshot.allSlicesOf(key).flatMap(({ ports, endpoints }): SlicePeers[] => {
    if (endpoints.length === 0) return []
    const numbered = ports.map(({ protocol, port }) => ({ protocol: protocolNumber(protocol), port }))
    return [{ addrs: endpoints.map(({ addr }) => addr), ports: new Map(numbered.map((port) => [portNumber(port), port])) }]
  })
  return { kind: 'service', key, value: slices.length === 0 ? undefined : { slices } }
}

type Rules = Pick<Policy, 'ingress' | 'egress'>

function servicesIn(of: Rules | undefined): ReadonlySet<string> {
  const sides = [...(of?.ingress ?? []), ...(of?.egress ?? [])]
  return new Set(sides.flatMap(({ source, destination }) => [...(source.services ?? []), ...(destination.services ?? [])]).map(nameKey))
}
