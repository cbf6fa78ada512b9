// SPDX-License-Identifier: Apache-2.0
/** A node → rows: its addresses, and for another one the ranges that are reached in the tunnel. Layer: agent/compile
 * (pure). */
import { RANGE_INSIDE, RANGE_TUNNEL_BACK } from '#lib/base/bpf-constants.ts'
import { compareText } from '#lib/base/order.ts'
import { nodeAddress, podRanges } from '#lib/model/node.ts'
import type { Node } from '#lib/model/node.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { otherNodeAddrs, selfAddrs } from './addresses.ts'
import type { OverlayRow, Row, VtepRow } from './desired.ts'
import { failsafeRows } from './failsafes.ts'
import { setId } from './services/list-ids.ts'
import { overlayAddress, rangesInside } from './pools.ts'
import type { OtherNode, Pools } from './pools.ts'
import { rangeRows, wholeCidr } from './prefix-sets.ts'
import type { CompileSettings } from './settings.ts'

export interface NodeRowsInput {
  readonly snapshot: Snapshot
  readonly pools: Pools
  readonly settings: Pick<CompileSettings, 'nodes'>
  /** this node's name */
  readonly self: string
}

/** Of the node of this name; what only the settings say is put down to this node. */
export function nodeRows(name: string, { snapshot, pools, settings, self }: NodeRowsInput): readonly Row[] {
  const node = snapshot.nodes.get(name)
  const { nodePortAddresses, tunnelBack, nodesInside, failsafes } = settings.nodes
  const addressesInside = nodesInside && node !== undefined ? node.addresses.map(wholeCidr) : []
  const inside = rangeRows(setId(RANGE_INSIDE), [...addressesInside, ...(node === undefined ? [] : rangesInside(pools, node))])
  if (name === self) {
    return [
      ...inside,
      ...rangeRows(setId(RANGE_TUNNEL_BACK), tunnelBack),
      ...selfAddrs(node?.addresses ?? [], nodePortAddresses),
      ...failsafeRows(failsafes),
    ]
  }
  if (node === undefined) return []
  return [...inside, ...overlayRows(pools, { node, self: snapshot.nodes.get(self) }), ...vtepRows(node), ...otherNodeAddrs(node)]
}

function overlayRows(pools: Pools, nodes: { readonly node: Node } & OtherNode): readonly OverlayRow[] {
  return podRanges(nodes.node)
    .flatMap((cidr): OverlayRow[] => {
      const node = overlayAddress(pools, cidr, nodes)
      return node === undefined ? [] : [{ table: 'routes', key: { cidr }, value: { node } }]
    })
    .sort((a, b) => compareText(a.key.cidr.addr, b.key.cidr.addr) || a.key.cidr.bits - b.key.cidr.bits)
}

/** Of the addresses to which packets go in the tunnel. */
function vtepRows(node: Node): readonly VtepRow[] {
  return ([true, false] as const).flatMap((v4) => {
    const [addr, mac] = [nodeAddress(node, v4), v4 ? node.vteps?.v4 : node.vteps?.v6]
    return addr === undefined || mac === undefined ? [] : [{ table: 'vteps' as const, key: { addr }, value: { mac } }]
  })
}
