// SPDX-License-Identifier: Apache-2.0
/** Whether each pod's address is in a block of its node, and that pod's. Layer: upgrade (pure). */
import { formatAddr, tryParseCidr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { by, compareText, sorted } from '#lib/base/order.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import { indexOf } from '#lib/base/range.ts'
import { IP_BLOCK } from '#lib/kube/objects/ip-block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { nameKey } from '#lib/model/ref.ts'
import { isOfPodCidr, livePods, type LivePod } from '../../stored/ipam/pods.ts'

export interface AddressesInput {
  readonly pods: readonly unknown[]
  readonly nodes: readonly unknown[]
  /** all that is stored */
  readonly objects: readonly unknown[]
  /** of this version, as the server has them */
  readonly blocks: readonly IPBlock[]
}

/** A sentence each. Where there is no block at all another plugin has given the addresses. */
export function addressDifferences({ pods, nodes, objects, blocks }: AddressesInput): readonly string[] {
  const stored = new PrefixMap<true>()
  const ranges = objects.flatMap(rangeOf)
  for (const range of ranges) stored.set(range, true)
  if (blocks.length + ranges.length === 0) return []
  const byCidr = new PrefixMap<IPBlock>()
  for (const block of blocks) byCidr.set(block.cidr, block)
  const live = livePods(pods, nodes)
  // agents know it by the range of their node
  const isKept = (address: Addr, pod: LivePod): boolean => stored.find(address) === undefined && isOfPodCidr(live, pod, address)
  return sorted(
    live.byAddress,
    by(([address]) => address, compareText),
  ).flatMap(([address, pod]) => {
    const block = byCidr.find(address)
    if (block === undefined && isKept(address, pod)) return []
    const reason = block === undefined ? 'is in no block' : heldReason(block, address, pod)
    return reason === undefined ? [] : [`${formatAddr(address)} of pod ${nameKey(pod.pod)} ${reason}`]
  })
}

/** Of a stored block. */
function rangeOf(object: unknown): readonly Cidr[] {
  const { kind, spec } = fieldsOf(object)
  const range = kind === IP_BLOCK.kind ? tryParseCidr(textOf(fieldsOf(spec)['cidr'])) : undefined
  return range === undefined ? [] : [range]
}

function heldReason(block: IPBlock, address: Addr, { pod, containerId }: LivePod): string | undefined {
  if (block.node !== pod.nodeName) return `is in a block of node ${block.node}, and the pod is on ${pod.nodeName ?? 'none'}`
  const holder = block.held.get(indexOf(block.cidr, address) ?? -1)
  if (holder === undefined) return 'is free in its block'
  if (nameKey({ namespace: holder.namespace, name: holder.pod }) !== nameKey(pod))
    return `is that of pod ${holder.namespace}/${holder.pod} in its block`
  const isOther = containerId !== '' && holder.containerId !== containerId
  return isOther ? `is that of sandbox ${holder.containerId} in its block, and the pod's is ${containerId}` : undefined
}
