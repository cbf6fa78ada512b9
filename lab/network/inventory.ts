// SPDX-License-Identifier: Apache-2.0
/** Manifests → the nodes and pods a lab is to have. Layer: lab (pure). */
import { compareText, by } from '#lib/base/order.ts'
import { isPort, type Addr, type Port } from '#lib/base/ip.ts'
import { tryParseStoredAddr } from '#lib/base/stored-ip.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { INTERFACE_PREFIX } from '#lib/model/pod.ts'
import { at, listAt, numberAt, textAt } from '../raw.ts'

export interface InventoryNode {
  readonly name: string
  /** as its agent takes them from the Node, at least one */
  readonly addrs: readonly Addr[]
}

export interface ServedPort {
  readonly protocol: 'TCP' | 'UDP'
  readonly port: Port
}

export interface InventoryPod {
  /** "namespace/name" */
  readonly key: string
  readonly node: string
  /** empty for a pod of the host network */
  readonly addrs: readonly Addr[]
  readonly hostNetwork: boolean
  /** what its containers declare: the lab has an echo server answer there */
  readonly ports: readonly ServedPort[]
}

export interface Inventory {
  readonly nodes: readonly InventoryNode[]
  readonly pods: readonly InventoryPod[]
  /** beginning of the names of pods' interfaces, from FelixConfiguration `default` */
  readonly interfacePrefix: string
  /** where agents answer /readiness, from FelixConfiguration `default`, when the lab is built */
  readonly healthPort: number
  /** what was left out, a sentence each */
  readonly notes: readonly string[]
}

/** Kinds other than Node, Pod and FelixConfiguration are the agents' business and pass unseen. Sorted by name; of
 * two objects with one name the last counts. `only`: these nodes and their pods. */
export function takeInventory(objects: readonly unknown[], only?: readonly string[]): Inventory {
  const notes: string[] = []
  const nodes = new Map<string, InventoryNode>()
  const pods = new Map<string, InventoryPod>()
  const felix = configurations(objects).get('default')
  for (const object of objects) {
    const kind = textAt(object, 'kind')
    if (kind === 'Node') put(nodes, nodeOf(object, notes))
    else if (kind === 'Pod') put(pods, podOf(object, notes))
  }
  for (const name of only ?? []) if (!nodes.has(name)) notes.push(`no manifest of node ${name}`)
  const wanted = [...nodes.values()].filter((node) => only?.includes(node.name) ?? true)
  const placed = [...pods.values()].filter((pod) => isPlaced(pod, { all: nodes, wanted }, notes))
  return {
    nodes: wanted.sort(by((node) => node.name, compareText)),
    pods: placed.sort(by((pod) => pod.key, compareText)),
    interfacePrefix: textAt(felix, 'spec.interfacePrefix')?.split(',')[0] ?? INTERFACE_PREFIX,
    healthPort: healthPortOf(objects),
    notes,
  }
}

/** Where the agent of this node answers, or those of all nodes without a configuration of their own. */
export function healthPortOf(objects: readonly unknown[], node?: string): number {
  const felix = configurations(objects)
  const own = node === undefined ? undefined : numberAt(felix.get(`node.${node}`), 'spec.healthPort')
  return own ?? numberAt(felix.get('default'), 'spec.healthPort') ?? 9099
}

function configurations(objects: readonly unknown[]): Map<string, unknown> {
  const all = objects.filter((object) => textAt(object, 'kind') === 'FelixConfiguration')
  return new Map(all.map((object) => [textAt(object, 'metadata.name') ?? '', object]))
}

function put<T extends { readonly name: string } | { readonly key: string }>(map: Map<string, T>, value: T | undefined): void {
  if (value !== undefined) map.set('name' in value ? value.name : value.key, value)
}

function isPlaced(
  pod: InventoryPod,
  nodes: { all: ReadonlyMap<string, InventoryNode>; wanted: readonly InventoryNode[] },
  notes: string[],
): boolean {
  if (!nodes.all.has(pod.node)) notes.push(`pod ${pod.key} left out: no manifest of its node ${pod.node}`)
  return nodes.wanted.some((node) => node.name === pod.node)
}

function nodeOf(object: unknown, notes: string[]): InventoryNode | undefined {
  const name = textAt(object, 'metadata.name')
  const parsed = parseObject(object, { kind: 'Node', namespace: '', name: name ?? '' })
  const addrs = parsed.kind === 'ok' && parsed.value.kind === 'Node' ? parsed.value.addresses : []
  if (name !== undefined && addrs.length > 0) return { name, addrs }
  notes.push(`node ${name ?? 'without a name'} left out: neither an InternalIP nor an ExternalIP in status.addresses`)
  return undefined
}

function podOf(object: unknown, notes: string[]): InventoryPod | undefined {
  const key = `${textAt(object, 'metadata.namespace') ?? 'default'}/${textAt(object, 'metadata.name') ?? ''}`
  const node = textAt(object, 'spec.nodeName')
  const phase = textAt(object, 'status.phase')
  // an ended pod has given its address back
  if (phase === 'Succeeded' || phase === 'Failed') return undefined
  const hostNetwork = at(object, 'spec.hostNetwork') === true
  const listed = listAt(object, 'status.podIPs').map((entry) => textAt(entry, 'ip'))
  const texts = listed.length > 0 ? listed : [textAt(object, 'status.podIP')]
  const addrs = hostNetwork ? [] : texts.flatMap((text) => tryParseStoredAddr(text ?? '') ?? [])
  const ports = listAt(object, 'spec.containers').flatMap((container) => listAt(container, 'ports').flatMap(portOf))
  if (node !== undefined && (hostNetwork || addrs.length > 0)) return { key, node, addrs, hostNetwork, ports }
  notes.push(`pod ${key} left out: ${node === undefined ? 'no spec.nodeName' : 'no status.podIPs'}`)
  return undefined
}

function portOf(entry: unknown): ServedPort[] {
  const protocol = textAt(entry, 'protocol') ?? 'TCP'
  const port = numberAt(entry, 'containerPort') ?? 0
  return (protocol === 'TCP' || protocol === 'UDP') && isPort(port) ? [{ protocol, port }] : []
}
