// SPDX-License-Identifier: Apache-2.0
/** A node of an older version → what others have to know of it, which its own agent does not say. Layer: upgrade
 * (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { isMac } from '#lib/base/mac.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { tryParseCidr } from '#lib/base/ip.ts'
import { nodeNetworkRaw } from '#lib/kube/objects/node-network.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import type { Node, Vteps } from '#lib/model/node.ts'

/** Written on the Node by agents that make a device for the tunnel. */
const MACS = { v4: 'netplane.io/VXLANTunnelMACAddr', v6: 'netplane.io/VXLANTunnelMACAddrV6' } as const

/** `blocks`: of all nodes, as the server has them. What cannot be read of either is left out: so it is for agents.
 * The prefixes in which the node needs no tunnel stay unknown. */
export function networkOf(object: ApiObject, blocks: readonly ApiObject[]): Pick<ApiObject, 'metadata' | 'spec'> {
  const { name, uid } = object.metadata
  const node = readNode(object)
  const { v4, v6 } = vtepsOf(object)
  return {
    // it goes when the Node does
    metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
    spec: nodeNetworkRaw({
      addresses: node?.addresses ?? [],
      podCIDRs: node?.podCIDRs ?? [],
      blocks: blocks.flatMap(({ spec }) => rangeOf(spec, name)),
      labels: node?.labels ?? new Map(),
      ...((v4 ?? v6) !== undefined && { vteps: { v4, v6 } }),
    }),
  }
}

function readNode(object: ApiObject): Node | undefined {
  const identified = identify(object)
  const parsed = identified.kind === 'ours' ? parseObject(object, identified.ref) : undefined
  return parsed?.kind === 'ok' && parsed.value.kind === 'Node' ? parsed.value : undefined
}

function rangeOf(spec: unknown, name: string) {
  const { node, cidr } = fieldsOf(spec)
  const range = node === name ? tryParseCidr(textOf(cidr)) : undefined
  return range === undefined ? [] : [range]
}

function vtepsOf({ metadata: { annotations = {} } }: ApiObject): Vteps {
  const read = (name: string): string | undefined => {
    const mac = textOf(annotations[name]).toLowerCase()
    return isMac(mac) ? mac : undefined
  }
  return { v4: read(MACS.v4), v6: read(MACS.v6) }
}
