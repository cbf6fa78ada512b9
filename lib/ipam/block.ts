// SPDX-License-Identifier: Apache-2.0
/** Giving addresses of a block away, and taking them back. Layer: lib/ipam (pure). */
import { cidrContains, type Addr, type Cidr } from '../base/ip.ts'
import type { Holder, IPBlock } from '../model/ip-block.ts'
import { addrAt, indexOf, isNetworkAddress, rangeSize } from '../base/range.ts'

export interface AssignOptions {
  readonly holder: Holder
  /** ms since 1970 */
  readonly now: number
  /** for how long an address that was given back rests: others may still send to it, or hold its flows */
  readonly restMs: number
  /** may it be an address of a network ({@link isNetworkAddress}), when there is no other */
  readonly network?: boolean
  /** may it be one that has not rested long enough, when there is no other */
  readonly hurry?: boolean
  /** addresses that are in use whatever this block says */
  readonly inUse?: ReadonlySet<Addr>
  /** the pool or podCIDR, and nothing beside it: a pool may have left only a part of the block. The block where it is
   * not given */
  readonly within?: Cidr
}

/** Whether the holder no longer needs its address. */
export type IsGone = (holder: Holder, addr: Addr) => boolean

export interface Assigned {
  readonly block: IPBlock
  readonly addr: Addr
}

export function emptyBlock(cidr: Cidr, node: string): IPBlock {
  return { cidr, node, held: new Map(), freed: new Map() }
}

/** A holder that asks again gets the address it has. Otherwise the lowest free address, or in a hurry the one that
 * has rested longest. Addresses of networks are given only where the options say so. */
export function assign(block: IPBlock, options: AssignOptions): Assigned | undefined {
  const known = addressOf(block, options.holder)
  if (known !== undefined && isWithin(known, options)) return { block, addr: known }
  const index = fresh(block, options) ?? (options.hurry === true ? longestRested(block, options) : undefined)
  return index === undefined ? undefined : hold(block, index, options.holder)
}

/** This address and no other; undefined when another holder has it. */
export function assignFixed(block: IPBlock, addr: Addr, holder: Holder): Assigned | undefined {
  const index = indexOf(block.cidr, addr)
  const has = index === undefined ? undefined : block.held.get(index)
  if (index === undefined || (has !== undefined && !sameHolder(has, holder))) return undefined
  return hold(block, index, holder)
}

/** The highest free address, which pods get last. Undefined where no other one is left for them. */
export function spareAddress(block: IPBlock, options: FreeOptions): Addr | undefined {
  const lowest = fresh(block, options) ?? Infinity
  for (let index = rangeSize(block.cidr) - 1; index > lowest; index--) if (isFresh(block, index, options)) return addrAt(block.cidr, index)
  return undefined
}

/** Takes back what these holders have; the same block when they have nothing. */
export function release(block: IPBlock, isGone: IsGone, now: number): IPBlock {
  const gone = [...block.held].filter(([index, holder]) => isGone(holder, addrAt(block.cidr, index))).map(([index]) => index)
  if (gone.length === 0) return block
  const held = new Map(block.held)
  const freed = new Map(block.freed)
  for (const index of gone) {
    held.delete(index)
    freed.set(index, now)
  }
  return { ...block, held, freed }
}

export function addressOf(block: IPBlock, holder: Holder): Addr | undefined {
  for (const [index, has] of block.held) if (sameHolder(has, holder)) return addrAt(block.cidr, index)
  return undefined
}

export function sameHolder(a: Holder, b: Holder): boolean {
  return a.containerId === b.containerId && a.pod === b.pod && a.namespace === b.namespace
}

function hold(block: IPBlock, index: number, holder: Holder): Assigned {
  const freed = new Map(block.freed)
  freed.delete(index)
  return { block: { ...block, held: new Map(block.held).set(index, holder), freed }, addr: addrAt(block.cidr, index) }
}

type FreeOptions = Omit<AssignOptions, 'holder' | 'hurry'>

function fresh(block: IPBlock, options: FreeOptions): number | undefined {
  for (let index = 0; index < rangeSize(block.cidr); index++) if (isFresh(block, index, options)) return index
  return undefined
}

function isFresh(block: IPBlock, index: number, options: FreeOptions): boolean {
  const { now, restMs } = options
  const freed = block.freed.get(index)
  // a clock that was set back must not keep an address for ever
  const rests = freed !== undefined && now >= freed && now - freed < restMs
  return !rests && isFree(block, index, options)
}

function longestRested(block: IPBlock, options: AssignOptions): number | undefined {
  const resting = [...block.freed].filter(([index]) => isFree(block, index, options))
  return resting.sort(([, a], [, b]) => a - b)[0]?.[0]
}

function isFree(block: IPBlock, index: number, options: FreeOptions): boolean {
  const addr = addrAt(block.cidr, index)
  const { inUse, network, within = block.cidr } = options
  return (
    !block.held.has(index) && inUse?.has(addr) !== true && isWithin(addr, options) && (network === true || !isNetworkAddress(addr, within))
  )
}

function isWithin(addr: Addr, { within }: FreeOptions): boolean {
  return within === undefined || cidrContains(within, addr)
}
