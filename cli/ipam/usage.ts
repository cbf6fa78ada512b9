// SPDX-License-Identifier: Apache-2.0
/** How many addresses of pools and blocks are given away, as text. Layer: cli (pure). */
import { addrBits, cidrContains, formatAddr, formatCidr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { rangeSize } from '#lib/base/range.ts'
import { table } from '#lib/base/table.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { nameKey } from '#lib/model/ref.ts'
import { linesText } from '../command-result.ts'
import { orDash } from '../text.ts'
import { blockFinder, borrowedAddresses, heldAddresses, holderName, podsByAddress, poolOf, type AddressView } from './view.ts'

/** A row for each pool; with its blocks below it. Blocks of no pool come last, as one. */
export function usageText({ pools, blocks }: Pick<AddressView, 'pools' | 'blocks'>, withBlocks: boolean): string {
  const byPool = Map.groupBy(blocks, ({ cidr }) => poolOf(pools, cidr.addr))
  const below = (some: readonly IPBlock[]): readonly (readonly string[])[] => (withBlocks ? some.map(blockRow) : [])
  const rows = pools.flatMap((pool) => {
    const some = byPool.get(pool) ?? []
    return [usageRow(`IPPool ${pool.name}`, { cidr: formatCidr(pool.cidr), size: sizeOf(pool.cidr), used: usedOf(some) }), ...below(some)]
  })
  const others = byPool.get(undefined) ?? []
  const size = others.reduce((sum, { cidr }) => sum + rangeSize(cidr), 0)
  const rest = others.length === 0 ? [] : [usageRow('no IPPool', { cidr: '-', size, used: usedOf(others) }), ...below(others)]
  return `${table([['GROUPING', 'CIDR', 'NODE', 'IPS TOTAL', 'IPS IN USE', 'IPS FREE'], ...rows, ...rest])}\n`
}

interface Usage {
  readonly cidr: string
  readonly node?: string
  readonly size: number
  readonly used: number
}

function blockRow({ cidr, node, held }: IPBlock): readonly string[] {
  return usageRow('Block', { cidr: formatCidr(cidr), node, size: rangeSize(cidr), used: held.size })
}

function usageRow(grouping: string, { cidr, node = '-', size, used }: Usage): readonly string[] {
  const share = Math.round((100 * used) / size)
  return [grouping, cidr, node, countText(size), `${used} (${share}%)`, `${countText(size - used)} (${100 - share}%)`]
}

function sizeOf({ addr, bits }: Cidr): number {
  return 2 ** (addrBits(addr) - bits)
}

/** A pool of IPv6 has more addresses than a number can tell apart. */
function countText(count: number): string {
  return Number.isSafeInteger(count) ? String(count) : `2^${Math.round(Math.log2(count))}`
}

function usedOf(blocks: readonly IPBlock[]): number {
  return blocks.reduce((sum, { held }) => sum + held.size, 0)
}

/** Who has one address, and whose block and pool it is of. */
export function addressText({ blocks, pools, pods }: AddressView, addr: Addr): string {
  const held = heldAddresses(blocks.filter(({ cidr }) => cidrContains(cidr, addr))).find((one) => one.addr === addr)
  const block = held?.block ?? blockFinder(blocks)(addr)
  const stated = (podsByAddress(pods).get(addr) ?? []).map((pod) => `${nameKey(pod)} on node ${pod.nodeName ?? '-'}`)
  return linesText([
    `IP ${formatAddr(addr)} is ${held === undefined ? 'not ' : ''}in use`,
    ...(held === undefined ? [] : [`  Given to:   pod ${holderName(held.holder)}, container ${orDash(held.holder.containerId)}`]),
    `  Pods:       ${orDash(stated.join(', '))}`,
    `  Block:      ${block === undefined ? '-' : `${formatCidr(block.cidr)} of node ${block.node}`}`,
    `  IPPool:     ${orDash(poolOf(pools, addr)?.name ?? '')}`,
  ])
}

export function borrowedText(view: Pick<AddressView, 'blocks' | 'pods'>): string {
  const rows = borrowedAddresses(view).map(({ addr, block, pod }) => [
    formatAddr(addr),
    pod.nodeName ?? '-',
    formatCidr(block.cidr),
    block.node,
    nameKey(pod),
  ])
  return `${table([['IP', 'BORROWING-NODE', 'BLOCK', 'BLOCK OWNER', 'ALLOCATED-TO'], ...rows])}\n`
}

/** What cannot be set: nodes always do so. */
export function configurationText(): string {
  const rows = [
    ['PROPERTY', 'VALUE'],
    ['StrictAffinity', 'true'],
    ['AutoAllocateBlocks', 'true'],
    ['MaxBlocksPerHost', '0'],
  ]
  return `${table(rows)}\n`
}
