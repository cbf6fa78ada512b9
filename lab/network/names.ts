// SPDX-License-Identifier: Apache-2.0
/** Everything in a lab that has a name, and how to read one: what the lab made is recognisable by it. Layer: lab
 * (pure). */
import { ParseError } from '#lib/base/errors.ts'
import { sha1 } from '#lib/base/hash.ts'

/** A place in a lab where a command can run. */
export type Target =
  | { readonly kind: 'client' }
  | { readonly kind: 'far' }
  | { readonly kind: 'fabric' }
  | { readonly kind: 'node'; readonly node: string }
  | { readonly kind: 'pod'; readonly pod: string }

/** Kernel limit of an interface name, without the closing zero. */
const INTERFACE_NAME = 15

/** Lower-case letters and digits, at most 16: a dash would make the names of two labs run into each other. */
export function parseLabName(text: string): string {
  if (!/^[a-z0-9]{1,16}$/.test(text)) throw new ParseError('lab name', text, 'at most 16 lower-case letters and digits')
  return text
}

/** "client" (beside the nodes), "far" (behind the router), "fabric" (the router itself), "node/NAME",
 * "NAMESPACE/POD", or "POD" in namespace default. */
export function parseTarget(text: string): Target {
  if (text === 'client' || text === 'far' || text === 'fabric') return { kind: text }
  const parts = text.split('/')
  const [first, second] = parts
  if (first === undefined || first === '' || second === '' || parts.length > 2) throw new ParseError('place in the lab', text)
  if (second === undefined) return { kind: 'pod', pod: `default/${first}` }
  return first === 'node' ? { kind: 'node', node: second } : { kind: 'pod', pod: `${first}/${second}` }
}

/** Name of the network namespace, as `ip netns` shows it. A pod of the host network has none of its own. */
export function netnsName(lab: string, target: Target): string {
  switch (target.kind) {
    case 'node':
      return `nplab-${lab}-node-${target.node}`
    case 'pod':
      return `nplab-${lab}-pod-${target.pod.replace('/', '.')}`
    default:
      return `nplab-${lab}-${target.kind}`
  }
}

/** Where processes of this place are kept, below the lab's own cgroup. Node names cannot begin with "_". */
export function cgroupName(target: Target, node?: string): string {
  switch (target.kind) {
    case 'node':
      return `${target.node}/exec`
    case 'pod':
      return `${node ?? '_none'}/pods/${target.pod.replace('/', '.')}`
    default:
      return `_${target.kind}`
  }
}

/** The bridge's side of a node's or client's veth. */
export function bridgePort(kind: 'p' | 'c', name: string): string {
  const plain = `${kind}-${name}`
  return plain.length <= INTERFACE_NAME ? plain : `${kind}.${sha1(name).slice(0, INTERFACE_NAME - 2)}`
}

/** A locally administered unicast address that is the same in every run, so that a repair does not upset neighbour
 * caches. */
export function macOf(namespace: string, device: string): string {
  const digits = sha1(`${namespace} ${device}`)
  return ['02', ...[0, 2, 4, 6, 8].map((at) => digits.slice(at, at + 2))].join(':')
}
