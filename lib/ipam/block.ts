// SPDX-License-Identifier: Apache-2.0
/** A range of addresses that one node gives to its pods: who has which, and which were had lately. Layer: lib/ipam (pure). */
import type { Addr, Cidr } from '../base/ip.ts'
import { addrAt, indexOf, rangeSize } from './range.ts'

/** Whose an address is. */
export interface Holder {
  readonly namespace: string
  readonly pod: string
  /** the sandbox: a pod that is made anew is another holder */
  readonly containerId: string
}

/** Replaced, never changed. Indexes count from the block's first address. */
export interface Block {
  readonly cidr: Cidr
  readonly node: string
  readonly held: ReadonlyMap<number, Holder>
  /** when addresses were given back, in ms since 1970 */
  readonly freed: ReadonlyMap<number, number>
}

export interface AssignOptions {
  readonly holder: Holder
  /** ms since 1970 */
  readonly now: number
  /** for how long an address that was given back rests: others may still send to it, or hold its flows */
  readonly restMs: number
  /** may it be one that has not rested long enough, when there is no other */
  readonly hurry?: boolean
  /** addresses that are in use whatever this block says */
  readonly inUse?: ReadonlySet<Addr>
}

export interface Assigned {
  readonly block: Block
  readonly addr: Addr
}

export function emptyBlock(cidr: Cidr, node: string): Block {
  return { cidr, node, held: new Map(), freed: new Map() }
}

/** Who asks again gets what it has. Otherwise the lowest address that nobody has, or in a hurry the one that has rested longest. */
export function assign(block: Block, options: AssignOptions): Assigned | undefined {
  const known = addressOf(block, options.holder)
  if (known !== undefined) return { block, addr: known }
  const index = fresh(block, options) ?? (options.hurry === true ? longestRested(block, options) : undefined)
  return index === undefined ? undefined : hold(block, index, options.holder)
}

/** This address and no other; undefined when somebody else has it. */
export function assignFixed(block: Block, addr: Addr, holder: Holder): Assigned | undefined {
  const index = indexOf(block.cidr, addr)
  const has = index === undefined ? undefined : block.held.get(index)
  if (index === undefined || (has !== undefined && !sameHolder(has, holder))) return undefined
  return hold(block, index, holder)
}

/** Takes back what these holders have; the same block when they have nothing. */
export function release(block: Block, isGone: (holder: Holder) => boolean, now: number): Block {
  const gone = [...block.held].filter(([, holder]) => isGone(holder)).map(([index]) => index)
  if (gone.length === 0) return block
  const held = new Map(block.held)
  const freed = new Map(block.freed)
  for (const index of gone) {
    held.delete(index)
    freed.set(index, now)
  }
  return { ...block, held, freed }
}

export function addressOf(block: Block, holder: Holder): Addr | undefined {
  for (const [index, has] of block.held) if (sameHolder(has, holder)) return addrAt(block.cidr, index)
  return undefined
}

export function sameHolder(a: Holder, b: Holder): boolean {
  return a.containerId === b.containerId && a.pod === b.pod && a.namespace === b.namespace
}

function hold(block: Block, index: number, holder: Holder): Assigned {
  const freed = new Map(block.freed)
  freed.delete(index)
  return { block: { ...block, held: new Map(block.held).set(index, holder), freed }, addr: addrAt(block.cidr, index) }
}

function fresh(block: Block, { now, restMs, inUse }: AssignOptions): number | undefined {
  for (let index = 0; index < rangeSize(block.cidr); index++) {
    const freed = block.freed.get(index)
    // a clock that was set back must not keep an address for ever
    const rests = freed !== undefined && now >= freed && now - freed < restMs
    if (!rests && isFree(block, index, inUse)) return index
  }
  return undefined
}

function longestRested(block: Block, { inUse }: AssignOptions): number | undefined {
  const resting = [...block.freed].filter(([index]) => isFree(block, index, inUse))
  return resting.sort(([, a], [, b]) => a - b)[0]?.[0]
}

function isFree(block: Block, index: number, inUse: AssignOptions['inUse']): boolean {
  return !block.held.has(index) && inUse?.has(addrAt(block.cidr, index)) !== true
}
