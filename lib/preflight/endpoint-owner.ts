// SPDX-License-Identifier: Apache-2.0
/** Whose the addresses of an endpoint are, where they are no way to all API servers. Layer: lib/preflight (pure). */
import { cidrContains, formatAddr, isAny, parseAddr, parseCidr, type Addr, type Cidr } from '../base/ip.ts'
import { fieldsOf, objectsIn, textOf } from '../base/object.ts'
import { tryParseStoredAddr, tryParseStoredCidr } from '../base/stored-ip.ts'
import type { RawObject } from './results.ts'

/** What of the cluster has addresses. */
export interface Population {
  readonly nodes: readonly RawObject[]
  /** those that may have one of the addresses */
  readonly pods: readonly RawObject[]
  /** whose addresses pods get */
  readonly ranges: readonly PodRange[]
}

export interface PodRange {
  readonly cidr: Cidr
  /** "pool default" */
  readonly name: string
}

export type EndpointOwner =
  | { readonly kind: 'pod' | 'range'; readonly name: string; readonly address: string }
  /** `planes`: how many nodes have API servers */
  | { readonly kind: 'node'; readonly name: string; readonly planes: number }

const LOOPBACK = parseCidr('127.0.0.0/8')
const LOOPBACK_V6 = parseAddr('::1')
const PLANE_LABELS = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']

/** Of all addresses of a name, or of the one that is given. Undefined: nothing speaks against them. Addresses of
 * several nodes are as good as a balancer, and a loopback address is another machine on each node. */
export function endpointOwner(addresses: readonly string[], { nodes, pods, ranges }: Population): EndpointOwner | undefined {
  const all = addresses.flatMap((address) => addrOf(address) ?? []).filter((addr) => !isLoopbackAddr(addr))
  const has = (texts: readonly string[], addr: Addr): boolean => texts.some((text) => addrOf(text) === addr)
  for (const addr of all) {
    const pod = pods.find((one) => has(podAddresses(one), addr))
    if (pod !== undefined) return { kind: 'pod', name: nameOf(pod), address: formatAddr(addr) }
    if (nodes.some((node) => has(nodeAddresses(node), addr))) continue
    const range = ranges.find(({ cidr }) => cidrContains(cidr, addr))
    if (range !== undefined) return { kind: 'range', name: range.name, address: formatAddr(addr) }
  }
  const planes = nodes.filter(isControlPlane)
  const own = all.length === 0 ? undefined : planes.find((node) => all.every((addr) => has(nodeAddresses(node), addr)))
  return own && { kind: 'node', name: own.metadata.name, planes: planes.length }
}

/** Is this the pod's own address, and not its node's? */
export function hasAddress(pod: RawObject, host: string | undefined): boolean {
  const addr = host === undefined ? undefined : addrOf(host)
  return addr !== undefined && podAddresses(pod).some((text) => addrOf(text) === addr)
}

/** Ranges of nodes, and pools whose addresses pods get. */
export function podRanges(nodes: readonly RawObject[], pools: readonly RawObject[]): readonly PodRange[] {
  const ofPools = pools
    .filter(isForPods)
    .map(({ metadata, spec }) => ({ text: textOf(fieldsOf(spec)['cidr']), name: `pool ${metadata.name}` }))
  const ofNodes = nodes.flatMap(({ metadata, spec }) => {
    const { podCIDR, podCIDRs } = fieldsOf(spec)
    const texts: readonly unknown[] = Array.isArray(podCIDRs) ? podCIDRs : [podCIDR]
    return texts.map((text) => ({ text: textOf(text), name: `pods of node ${metadata.name}` }))
  })
  return [...ofPools, ...ofNodes].flatMap(({ text, name }) => {
    const cidr = tryParseStoredCidr(text)
    return cidr === undefined ? [] : [{ cidr, name }]
  })
}

/** By which it is reached by other machines. */
export function nodeAddresses({ status }: RawObject): readonly string[] {
  const told = objectsIn(fieldsOf(status)['addresses'])
  return ['InternalIP', 'ExternalIP'].flatMap((type) => told.filter((one) => one['type'] === type).map((one) => textOf(one['address'])))
}

export function isControlPlane({ metadata }: RawObject): boolean {
  const labels = fieldsOf(metadata['labels'])
  return PLANE_LABELS.some((label) => labels[label] !== undefined)
}

/** Of the machine alone that asks for it. */
export function isLoopbackAddr(addr: Addr): boolean {
  return cidrContains(LOOPBACK, addr) || addr === LOOPBACK_V6 || isAny(addr)
}

/** Addresses may be written in several ways. */
function addrOf(address: string): Addr | undefined {
  return tryParseStoredAddr(address)
}

/** A pod in the network of its node has no address of its own. */
function podAddresses({ spec, status }: RawObject): readonly string[] {
  return fieldsOf(spec)['hostNetwork'] === true ? [] : objectsIn(fieldsOf(status)['podIPs']).map(({ ip }) => textOf(ip))
}

function isForPods({ spec }: RawObject): boolean {
  const { allowedUses } = fieldsOf(spec)
  return !Array.isArray(allowedUses) || allowedUses.length === 0 || allowedUses.includes('Workload')
}

function nameOf({ metadata }: RawObject): string {
  return `${textOf(metadata['namespace'])}/${metadata.name}`
}
