// SPDX-License-Identifier: Apache-2.0
/** Whom a node asks whether the tunnel's packets arrive. Layer: agent (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { nodeAddress, type Node } from '#lib/model/node.ts'

export interface Peer {
  readonly name: string
  readonly family: 'IPv4' | 'IPv6'
  readonly address: Addr
  /** this node's */
  readonly source: Addr
}

/** To each side of the ring. */
const SIDE = 4

/** All others where these are few, else those next to it in the order of names, the last beside the first: whom a node
 * asks is asked by it as well. Of each family that both have. */
export function peersOf(self: string, nodes: ReadonlyMap<string, Node>): readonly Peer[] {
  const own = nodes.get(self)
  const names = [...nodes.values()].filter(({ addresses }) => addresses.length > 0).map(({ name }) => name)
  names.sort(compareText)
  const at = names.indexOf(self)
  if (own === undefined || at < 0) return []
  const steps = Array.from({ length: 2 * SIDE + 1 }, (_, step) => step - SIDE)
  const around = new Set(steps.map((step) => names[(at + step + SIDE * names.length) % names.length] ?? self))
  around.delete(self)
  return [...around].flatMap((name) => {
    const node = nodes.get(name)
    return node === undefined ? [] : waysTo(node, own)
  })
}

function waysTo(node: Node, own: Node): readonly Peer[] {
  return ([true, false] as const).flatMap((v4): readonly Peer[] => {
    const [source, address] = [nodeAddress(own, v4), nodeAddress(node, v4)]
    if (source === undefined || address === undefined || source === address) return []
    return [{ name: node.name, family: v4 ? 'IPv4' : 'IPv6', source, address }]
  })
}
