// SPDX-License-Identifier: Apache-2.0
/** Which nodes a node asks whether the tunnel's packets arrive. Layer: agent (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { formatAddr, isV4, tryParseAddr } from '#lib/base/ip.ts'

export type Family = 'IPv4' | 'IPv6'

/** One address of a node. */
export interface Peer {
  readonly name: string
  readonly address: string
  readonly family: Family
}

/** To each side of the ring: what a node asks does not grow with the cluster. */
const SIDE = 8

/** A line a node: its name and its addresses. Returns by name in the order of names, of each family the first address.
 * Throws ConfigError. */
export function parsePeers(text: string): ReadonlyMap<string, readonly Peer[]> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const nodes = lines.map((line): [string, readonly Peer[]] => {
    const [name = '', ...addresses] = line.trim().split(/\s+/)
    const peers = addresses.map((text): Peer => {
      const addr = tryParseAddr(text)
      if (addr === undefined) throw new ConfigError('--peers', `${JSON.stringify(line)}: ${JSON.stringify(text)} is no address`)
      return { name, address: formatAddr(addr), family: isV4(addr) ? 'IPv4' : 'IPv6' }
    })
    const first = (['IPv4', 'IPv6'] as const).flatMap((family) => peers.find((peer) => peer.family === family) ?? [])
    return [name, first]
  })
  return new Map(nodes.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** All others where these are few, else those next to it in the order of names, the last beside the first: whom a node
 * asks is asked by it as well. Only families that both have. Throws ConfigError when the node is not among them. */
export function peersOf(node: string, nodes: ReadonlyMap<string, readonly Peer[]>): readonly Peer[] {
  const names = [...nodes.keys()]
  const at = names.indexOf(node)
  if (at < 0) throw new ConfigError('--peers', `this node, ${node}, is not among them`)
  const around =
    names.length - 1 <= 2 * SIDE ? names : Array.from({ length: 2 * SIDE + 1 }, (_, step) => names.at((at + step - SIDE) % names.length))
  const families = new Set(nodes.get(node)?.map(({ family }) => family))
  const asked = around.filter((name) => name !== undefined && name !== node)
  return asked.flatMap((name) => nodes.get(name ?? '') ?? []).filter(({ family }) => families.has(family))
}
