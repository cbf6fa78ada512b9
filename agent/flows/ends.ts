// SPDX-License-Identifier: Apache-2.0
/** What is behind the addresses of flows. Layer: agent/flows (pure). */
import { formatCidr, isV4, isWithin, parseCidr, type Addr } from '#lib/base/ip.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import { NONE, PRIVATE, PUBLIC, type FlowEnd } from '#lib/flows/flow.ts'
import { hostEndpointLabels, networkSetLabels, podLabels } from '#lib/model/effective-labels.ts'
import { NO_LABELS, type Labels } from '#lib/model/labels.ts'
import { hasOwnAddresses, type Pod, type PodGroup } from '#lib/model/pod.ts'
import type { HostEndpoint, NamedPort, NetworkSet } from '#lib/model/policy.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { ObjectChange, Snapshot, SnapshotKind } from '#lib/model/snapshot.ts'
import { endpointFinder, type Peers, type PolicyWorld } from '#lib/policy/peers.ts'

/** An address's owner, as flows tell it. */
export interface KnownEnd extends FlowEnd {
  /** "k=v", sorted */
  readonly labels: readonly string[]
  /** the pod's whole name; empty for anything else */
  readonly pod: string
  /** where it is; empty where that is not known */
  readonly node: string
  /** "Deployment/web"; empty where it has none */
  readonly owner: string
  /** of this node, whose programs tell of its flows: its pod, or the host endpoint that its own address has */
  readonly here: Pod | HostEndpoint | undefined
}

export type EndsWorld = PolicyWorld & Pick<Snapshot, 'podsOn'>

const PRIVATE_NETS = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'].map(parseCidr)
const SET_KINDS: ReadonlySet<SnapshotKind> = new Set(['NetworkSet', 'GlobalNetworkSet'])
/** Addresses whose labels are remembered. */
const MOST_LABELLED = 1024
/** All interfaces of a node, as host endpoints name them. */
const WILDCARD = '*'
/** A label by which its ReplicaSet tells a Deployment's pods from those of its other ones. */
const TEMPLATE_LABEL = 'pod-template-hash'

/** Keeps an index of pods, hosts and sets by address. As `Peers` it answers what rules ask of an address. */
export class Ends implements Peers {
  readonly #node: string
  #world: EndsWorld | undefined
  #pods = new Map<Addr, Pod>()
  /** of nodes, by their addresses: name of the node, and host endpoints that have the address */
  #hosts = new Map<Addr, { readonly node: string; readonly endpoints: readonly HostEndpoint[] }>()
  #sets = new PrefixMap<readonly NetworkSet[]>()
  /** each rule asks for those of one flow's ends */
  readonly #labels = new Map<Addr, readonly Labels[]>()
  #isEndpointOf: Peers['isEndpointOf'] = () => false
  /** pods and hosts alone: others' addresses have no end */
  readonly #known = new Map<Addr, KnownEnd>()

  /** `node`: this one's name */
  constructor(node: string) {
    this.#node = node
  }

  /** What there is, and what changed of it: undefined the first time. */
  note(world: EndsWorld, changes: readonly ObjectChange[] | undefined): void {
    const isOf = (is: (kind: SnapshotKind) => boolean): boolean => changes?.some(({ kind }) => is(kind)) !== false
    if (this.#world !== world || isOf((kind) => kind === 'EndpointSlice')) this.#isEndpointOf = endpointFinder(world)
    this.#world = world
    this.#labels.clear()
    if (changes === undefined) this.#pods = podsByAddress(world.pods.values())
    else for (const change of changes) if (change.kind === 'Pod') this.#change(change.before, change.after)
    if (isOf((kind) => kind === 'Node' || kind === 'HostEndpoint')) this.#hosts = hostsByAddress(world)
    if (isOf((kind) => SET_KINDS.has(kind))) this.#sets = setsByPrefix(world)
    if (isOf((kind) => kind === 'Node' || kind === 'HostEndpoint')) this.#known.clear()
  }

  #change(before: Pod | undefined, after: Pod | undefined): void {
    if (before !== undefined)
      for (const addr of before.podIPs) {
        this.#known.delete(addr)
        if (this.#pods.get(addr)?.name === before.name) this.#pods.delete(addr)
      }
    if (after === undefined || !hasOwnAddresses(after)) return
    for (const addr of after.podIPs) {
      this.#known.delete(addr)
      this.#pods.set(addr, after)
    }
  }

  /** `beside`: the namespace of the other end, whose sets go before those of the cluster. */
  find(addr: Addr, beside: string): KnownEnd {
    const known = this.#known.get(addr)
    if (known !== undefined) return known
    const pod = this.#pods.get(addr)
    const end = pod === undefined ? this.#hostEnd(addr) : podEnd(pod, this.#node)
    if (end === undefined) return this.#setEnd(addr, beside)
    this.#known.set(addr, end)
    return end
  }

  /** Does a node have it? */
  isNodes(addr: Addr): boolean {
    return this.#hosts.has(addr)
  }

  #hostEnd(addr: Addr): KnownEnd | undefined {
    const host = this.#hosts.get(addr)
    if (host === undefined) return undefined
    const { node, endpoints } = host
    const endpoint = endpoints[0]
    const here = node === this.#node ? endpoint : undefined
    return { ...bare('HostEndpoint', node), labels: labelTexts(endpoint?.labels ?? NO_LABELS), node, here }
  }

  #setEnd(addr: Addr, beside: string): KnownEnd {
    const sets = this.#sets.find(addr) ?? []
    const set = sets.find(({ namespace }) => namespace === beside) ?? sets.find(({ namespace }) => namespace === '') ?? sets[0]
    if (set !== undefined) return { ...bare('NetworkSet', set.name, set.namespace), labels: labelTexts(set.labels) }
    return bare('Network', isV4(addr) && isWithin(PRIVATE_NETS, addr) ? PRIVATE : PUBLIC)
  }

  labels(addr: Addr): readonly Labels[] {
    const known = this.#labels.get(addr)
    if (known !== undefined) return known
    if (this.#labels.size >= MOST_LABELLED) this.#labels.clear()
    const labels = this.#findLabels(addr)
    this.#labels.set(addr, labels)
    return labels
  }

  #findLabels(addr: Addr): readonly Labels[] {
    const world = this.#world
    if (world === undefined) return []
    const pod = this.#pods.get(addr)
    return [
      ...(pod === undefined ? [] : [podLabels(pod, world)]),
      ...this.#endpointsOf(addr).map((endpoint) => hostEndpointLabels(endpoint, world)),
      ...[...world.networkSets.values()].filter(({ nets }) => isWithin(nets, addr)).map((set) => networkSetLabels(set, world)),
    ]
  }

  nodes(addr: Addr): readonly Labels[] {
    const node = this.#world?.nodes.get(this.#hosts.get(addr)?.node ?? '')
    return node === undefined ? [] : [node.labels]
  }

  ports(addr: Addr, isMeant: (labels: Labels) => boolean): readonly NamedPort[] {
    const world = this.#world
    if (world === undefined) return []
    const pod = this.#pods.get(addr)
    const ofPod = pod !== undefined && isMeant(podLabels(pod, world)) ? pod.ports : []
    const meant = this.#endpointsOf(addr).filter((endpoint) => isMeant(hostEndpointLabels(endpoint, world)))
    return [...ofPod, ...meant.flatMap(({ ports }) => ports)]
  }

  isEndpointOf(...asked: Parameters<Peers['isEndpointOf']>): boolean {
    return this.#isEndpointOf(...asked)
  }

  #endpointsOf(addr: Addr): readonly HostEndpoint[] {
    return this.#hosts.get(addr)?.endpoints ?? []
  }
}

function bare(type: FlowEnd['type'], name: string, namespace = ''): KnownEnd {
  return { type, name, namespace: namespace === '' ? NONE : namespace, labels: [], pod: '', node: '', owner: '', here: undefined }
}

function podEnd(pod: Pod, node: string): KnownEnd {
  const { namespace, name, group, labels, nodeName = '' } = pod
  const shown = group === undefined || group.prefix === '' ? name : `${group.prefix}*`
  const here = nodeName === node ? pod : undefined
  const known = { labels: labelTexts(labels), pod: name, node: nodeName, owner: ownerText(group, labels), here }
  return { type: 'WorkloadEndpoint', name: shown, namespace, ...known }
}

/** A ReplicaSet that a Deployment has made has the Deployment's name and its template's hash. */
function ownerText(group: PodGroup | undefined, labels: Labels): string {
  const owner = group?.owner ?? ''
  const hash = `-${labels.get(TEMPLATE_LABEL) ?? ''}`
  const isMade = owner.startsWith('ReplicaSet/') && hash !== '-' && owner.endsWith(hash)
  return isMade ? `Deployment/${owner.slice('ReplicaSet/'.length, -hash.length)}` : owner
}

function labelTexts(labels: Labels): readonly string[] {
  return [...labels].map(([name, value]) => `${name}=${value}`).sort()
}

function podsByAddress(pods: Iterable<Pod>): Map<Addr, Pod> {
  return new Map([...pods].filter(hasOwnAddresses).flatMap((pod) => pod.podIPs.map((addr) => [addr, pod] as const)))
}

function hostsByAddress({ nodes, hostEndpoints }: EndsWorld): Map<Addr, { node: string; endpoints: HostEndpoint[] }> {
  const hosts = new Map<Addr, { node: string; endpoints: HostEndpoint[] }>()
  for (const node of nodes.values()) for (const addr of node.addresses) hosts.set(addr, { node: node.name, endpoints: [] })
  for (const endpoint of [...hostEndpoints.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { node, interfaceName, expectedIPs } = endpoint
    const addresses = interfaceName === WILDCARD ? (nodes.get(node)?.addresses ?? []) : []
    for (const addr of new Set([...expectedIPs, ...addresses])) {
      const host = hosts.get(addr)
      if (host === undefined) hosts.set(addr, { node, endpoints: [endpoint] })
      else if (host.node === node) host.endpoints.push(endpoint)
    }
  }
  return hosts
}

/** A prefix that is in a shorter one has the sets of that as well. */
function setsByPrefix({ networkSets }: EndsWorld): PrefixMap<readonly NetworkSet[]> {
  const nets = [...networkSets.values()].flatMap((set) => set.nets.map((net) => ({ net, set })))
  const byPrefix = Map.groupBy(nets, ({ net }) => formatCidr(net))
  const sets = new PrefixMap<readonly NetworkSet[]>()
  const inOrder = [...byPrefix.values()].sort(([a], [b]) => (a?.net.bits ?? 0) - (b?.net.bits ?? 0))
  for (const same of inOrder) {
    const net = same[0]?.net
    if (net === undefined) continue
    const around = sets.find(net.addr, isV4(net.addr) ? net.bits + 96 : net.bits) ?? []
    const own = same.map(({ set }) => set).sort((a, b) => (nameKey(a) < nameKey(b) ? -1 : 1))
    sets.set(net, [...new Set([...own, ...around])])
  }
  return sets
}
