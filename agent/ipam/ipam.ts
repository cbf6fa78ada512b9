// SPDX-License-Identifier: Apache-2.0
/** Gives pods their addresses and takes them back: one change at a time, and each is in the store before any caller
 * learns of it. Layer: agent/ipam. */
import { AddressError, NotYetError } from '#lib/base/errors.ts'
import { addrBits, cidrContains, formatAddr, formatCidr, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { addrAt, overlaps } from '#lib/base/range.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import {
  addressOf,
  assign,
  assignFixed,
  emptyBlock,
  release,
  sameHolder,
  spareAddress,
  type AssignOptions,
  type Assigned,
  type IsGone,
} from '#lib/ipam/block.ts'
import type { AddressPlan } from '#lib/ipam/plan.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { BlockStore, StoredBlock } from './block-store.ts'
import { BlockAllocator, type Claim } from './block-allocator.ts'
import { Semaphore } from '#lib/base/async/semaphore.ts'
import { OwnBlocks } from './own-blocks.ts'

export interface IpamOptions {
  readonly node: string
  /** of pools: what other nodes may want as well */
  readonly shared: BlockStore
  /** of ranges that the cluster has given to this node */
  readonly local: BlockStore
  /** ms since 1970 */
  readonly now: () => number
  /** for how long an address that was given back rests */
  readonly restMs: number
}

export interface AddressRequest extends Omit<Claim, 'options'> {
  readonly holder: Holder
  readonly plans: readonly AddressPlan[]
  /** addresses that are in use whatever blocks say */
  readonly inUse: ReadonlySet<Addr>
  /** true while the caller waits for it: asked when the requests before it are over */
  readonly isWanted: () => boolean
}

/** No pod gets these until they are disposed of. */
export interface LentAddresses extends Disposable {
  readonly addresses: readonly Addr[]
}

/** Besides this agent only the cleanup of abandoned blocks changes this node's blocks. */
const ATTEMPTS = 8
const NO_ADDRS: ReadonlySet<Addr> = new Set()

/** When there is no other address, first those of networks, then those that still rest. */
type LastResort = Pick<AssignOptions, 'network' | 'hurry'>
const OF_NETWORKS: LastResort = { network: true }
const RESTING: LastResort = { network: true, hurry: true }

export class Ipam {
  readonly #options: IpamOptions
  readonly #turns = new Semaphore(1)
  /** those of pools, and of ranges */
  readonly #shared: OwnBlocks
  readonly #local: OwnBlocks
  readonly #claims: BlockAllocator
  #announced: readonly string[] | undefined
  /** on loan, and written down nowhere */
  readonly #lent = new Set<Addr>()

  constructor(options: IpamOptions) {
    this.#options = options
    this.#shared = new OwnBlocks(options.shared)
    this.#local = new OwnBlocks(options.local)
    this.#claims = new BlockAllocator({ ...options, own: this.#shared })
  }

  /** One address for each plan, the same ones to a holder that asks again; all or none. Throws AddressError when there
   * is none, NotYetError when the caller waits no more, and whatever the store throws. */
  async assign(wanted: AddressRequest): Promise<readonly Addr[]> {
    return await this.#turn(wanted.isWanted, async () => {
      const request = { ...wanted, inUse: this.#lent.size === 0 ? wanted.inUse : new Set([...wanted.inUse, ...this.#lent]) }
      const { holder } = request
      // a range needs no API server
      const needed = this.#storesOf(request.plans)
      // a pod has one sandbox: what another has left of it would be kept from this one for as long as the pod is known
      // by it
      await this.#release((one) => isFormer(one, holder), needed)
      const isNew = !(await hasAny(needed, holder))
      try {
        const addrs: Addr[] = []
        for (const plan of request.plans) addrs.push(await this.#assignOne(plan, request))
        if (needed.includes(this.#shared)) await this.#announce()
        refuseUnwanted(request.isWanted, 'no call waits for it any more')
        return addrs
      } catch (thrown) {
        // what cannot be taken back now is found by the next garbage collection: its holder is not known
        if (isNew) await this.#release((one) => sameHolder(one, holder), needed).catch(() => undefined)
        throw thrown
      }
    })
  }

  /** One address for each plan, for the agent's own use: of blocks that this node has already, and that have another
   * one left for pods. Nothing is written: no other process knows of it. Throws AddressError when there is none,
   * NotYetError when the caller waits no more, and whatever the store throws. */
  async lend({ plans, inUse, isWanted }: Pick<AddressRequest, 'plans' | 'inUse' | 'isWanted'>): Promise<LentAddresses> {
    return await this.#turn(isWanted, async () => {
      const addresses: Addr[] = []
      for (const plan of plans)
        addresses.push((await this.#spare(plan, inUse)) ?? refuse(plan.ref, 'no block of this node has an address to spare'))
      refuseUnwanted(isWanted, 'no caller waits for it any more')
      for (const addr of addresses) this.#lent.add(addr)
      return {
        addresses,
        [Symbol.dispose]: () => {
          for (const addr of addresses) this.#lent.delete(addr)
        },
      }
    })
  }

  /** Takes back whatever these holders have. Returns how many addresses came back. Throws NotYetError when the caller
   * waits no more, and whatever the store throws. */
  async release(isGone: IsGone, isWanted = () => true): Promise<number> {
    // first those that no API server can keep waiting
    return await this.#turn(isWanted, () => this.#release(isGone, [this.#local, this.#shared]))
  }

  /** Gives back blocks without holders, but for one of each size and family that some pool has. Announces this node's
   * blocks to other nodes. `heard`: the blocks of this node that other nodes know, where that is known. They may have
   * lost some: another client can change the NodeNetwork. */
  async tidy(pools: readonly IPPool[], heard?: readonly Cidr[]): Promise<void> {
    await this.#turns.run(async () => {
      if (heard !== undefined && !deepEqual(heard.map(formatCidr).sort(), this.#announced?.toSorted())) {
        this.#announced = undefined
        // the client that changed it may have given a block to another node
        this.#shared.forget()
      }
      this.#shared.settle()
      const own = await this.#shared.all()
      const wanted = own.filter(({ block }) => isOfSome(pools, block.cidr))
      const isSpare = (stored: StoredBlock): boolean => {
        const at = wanted.indexOf(stored)
        return at < 0 || wanted.some((other, to) => to < at && isAlike(other, stored))
      }
      const isLent = ({ block }: StoredBlock): boolean => [...this.#lent].some((addr) => cidrContains(block.cidr, addr))
      const spare = own.filter((stored) => isEmpty(stored, this.#options) && isSpare(stored) && !isLent(stored))
      // first: another node that takes one announces it as well
      await this.#announce(spare)
      await this.#shared.remove(spare)
    })
  }

  async #turn<T>(isWanted: () => boolean, work: () => Promise<T>): Promise<T> {
    return await this.#turns.run(async () => {
      refuseUnwanted(isWanted, 'those before it took too long')
      return await work()
    })
  }

  #storesOf(plans: readonly AddressPlan[]): readonly OwnBlocks[] {
    return [...new Set(plans.map(({ kind }) => (kind === 'range' ? this.#local : this.#shared)))]
  }

  async #assignOne(plan: AddressPlan, request: AddressRequest): Promise<Addr> {
    const { restMs, now } = this.#options
    const options = { holder: request.holder, inUse: request.inUse, restMs, now: now() }
    switch (plan.kind) {
      case 'fixed':
        return await this.#assignFixed(plan, request)
      case 'range': {
        await this.#ensure(plan.range)
        const give = (more: LastResort) => this.#giveOf(this.#local, [plan.range], { ...options, ...more })
        return (
          (await give({})) ??
          (await give(OF_NETWORKS)) ??
          (await give(RESTING)) ??
          refuse(plan.ref, `all addresses of ${formatCidr(plan.range)} are in use`)
        )
      }
      case 'pools': {
        const ranges = plan.pools.map(({ cidr }) => cidr)
        const give = (more: LastResort) => this.#giveOf(this.#shared, ranges, { ...options, ...more })
        return (
          (await this.#known(plan.pools, request.holder)) ??
          (await give({})) ??
          (await this.#claims.first(plan.pools, { options, ...request })) ??
          (await give(OF_NETWORKS)) ??
          (await give(RESTING)) ??
          refuse(plan.ref, `IPPool ${plan.pools.map(({ name }) => name).join(', ')}: no address is free, and no block`)
        )
      }
    }
  }

  async #spare(plan: AddressPlan, inUse: ReadonlySet<Addr>): Promise<Addr | undefined> {
    const { restMs, now } = this.#options
    if (plan.kind === 'fixed') return undefined
    const all = await (plan.kind === 'range' ? this.#local : this.#shared).all()
    const taken = new Set([...inUse, ...this.#lent])
    const ranges = plan.kind === 'range' ? [plan.range] : plan.pools.map(({ cidr }) => cidr)
    return firstOf(ranges, (within) =>
      firstOf(all, ({ block }) =>
        overlaps(block.cidr, within)
          ? spareAddress(block, { now: now(), restMs, within, inUse: usedBeside(block, all, taken) })
          : undefined,
      ),
    )
  }

  /** What the holder has of these pools already. */
  async #known(pools: readonly IPPool[], holder: Holder): Promise<Addr | undefined> {
    for (const { block } of await this.#shared.all()) {
      const addr = addressOf(block, holder)
      if (addr !== undefined && pools.some(({ cidr }) => cidrContains(cidr, addr))) return addr
    }
    return undefined
  }

  async #assignFixed(plan: Extract<AddressPlan, { kind: 'fixed' }>, of: AddressRequest): Promise<Addr> {
    const { addr, pool, ref } = plan
    const { holder, inUse, elsewhere, isInhabited } = of
    const cidr = { addr: maskAddr(addr, pool.blockBits), bits: pool.blockBits }
    const { shared, node } = this.#options
    const own = await this.#shared.all()
    if (!own.some(({ block }) => cidrContains(block.cidr, addr))) {
      const taken = [...own.map(({ block }) => block.cidr), ...elsewhere].find((one) => one.bits !== cidr.bits && overlaps(one, cidr))
      if (taken !== undefined) refuse(ref, `${formatAddr(addr)} is in ${formatCidr(cidr)}, of which some node has ${formatCidr(taken)}`)
      if (isInhabited(cidr)) refuse(ref, `${formatAddr(addr)} is in ${formatCidr(cidr)}, of which pods of other nodes have addresses`)
      if ((await this.#shared.create(emptyBlock(cidr, node))) === undefined) {
        const other = (await shared.all()).find(({ block }) => cidrContains(block.cidr, addr))
        return refuse(ref, `${formatAddr(addr)} is in ${formatCidr(cidr)}, which node ${other?.block.node ?? '?'} has`)
      }
    }
    const isFree = !inUse.has(addr)
    const given = isFree ? await this.#give(this.#shared, (block) => assignFixed(block, addr, holder)) : undefined
    return given ?? refuse(ref, `${formatAddr(addr)} belongs to another pod`)
  }

  /** From one of our blocks in these ranges, tried in their order: of a block that is larger than what a pool or the
   * cluster has left of it, that. */
  async #giveOf(own: OwnBlocks, ranges: readonly Cidr[], options: AssignOptions): Promise<Addr | undefined> {
    for (const within of ranges) {
      const addr = await this.#give(own, (block, all) =>
        overlaps(block.cidr, within) ? assign(block, { ...options, within, inUse: usedBeside(block, all, options.inUse) }) : undefined,
      )
      if (addr !== undefined) return addr
    }
    return undefined
  }

  async #give(own: OwnBlocks, from: (block: IPBlock, all: readonly StoredBlock[]) => Assigned | undefined): Promise<Addr | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const all = await own.all()
      const found = firstOf(all, (stored) => {
        const assigned = from(stored.block, all)
        return assigned && { stored, assigned }
      })
      if (found === undefined) break
      if (await own.replace(found.stored, found.assigned.block)) return found.assigned.addr
    }
    return undefined
  }

  async #ensure(cidr: Cidr): Promise<void> {
    const own = await this.#local.all()
    if (!own.some(({ block }) => deepEqual(block.cidr, cidr))) await this.#local.create(emptyBlock(cidr, this.#options.node))
  }

  async #release(isGone: IsGone, from: readonly OwnBlocks[]): Promise<number> {
    let count = 0
    for (const own of from) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const changes = (await own.all()).flatMap((stored) => {
          const after = release(stored.block, isGone, this.#options.now())
          return after === stored.block ? [] : [{ stored, after }]
        })
        for (const { stored, after } of changes) if (await own.replace(stored, after)) count += stored.block.held.size - after.held.size
        if (changes.length === 0) break
      }
    }
    return count
  }

  /** Before an address is used the others must be able to know where it is. */
  async #announce(without: readonly StoredBlock[] = []): Promise<void> {
    const { shared } = this.#options
    const ranges = (await this.#shared.all()).filter((one) => !without.includes(one)).map(({ block }) => block.cidr)
    const text = ranges.map(formatCidr)
    if (deepEqual(text, this.#announced)) return
    await shared.announce(ranges)
    this.#announced = text
  }
}

function refuseUnwanted(isWanted: () => boolean, why: string): void {
  if (!isWanted()) throw new NotYetError(why)
}

/** Of the same pod, of another sandbox. */
function isFormer(one: Holder, { namespace, pod, containerId }: Holder): boolean {
  return one.namespace === namespace && one.pod === pod && one.containerId !== containerId
}

async function hasAny(stores: readonly OwnBlocks[], holder: Holder): Promise<boolean> {
  for (const own of stores) if ((await own.all()).some(({ block }) => addressOf(block, holder) !== undefined)) return true
  return false
}

/** A range of this node that became another one leaves a block that overlaps the new one's. */
function usedBeside(block: IPBlock, all: readonly StoredBlock[], inUse: ReadonlySet<Addr> = NO_ADDRS): ReadonlySet<Addr> {
  const beside = all.filter((one) => one.block !== block && overlaps(one.block.cidr, block.cidr))
  if (beside.length === 0) return inUse
  return new Set([...inUse, ...beside.flatMap(({ block: { cidr, held } }) => [...held.keys()].map((index) => addrAt(cidr, index)))])
}

/** A pool that assigns nothing takes its blocks back, and one of another size has others. */
function isOfSome(pools: readonly IPPool[], block: Cidr): boolean {
  return pools.some(({ assigns, blockBits, cidr }) => assigns !== 'none' && blockBits === block.bits && cidrContains(cidr, block.addr))
}

function refuse(ref: string, reason: string): never {
  throw new AddressError({ ref, reason })
}

function firstOf<T, R>(values: readonly T[], find: (value: T) => R | undefined): R | undefined {
  for (const value of values) {
    const found = find(value)
    if (found !== undefined) return found
  }
  return undefined
}

function isEmpty({ block: { held, freed } }: StoredBlock, { now, restMs }: Pick<IpamOptions, 'now' | 'restMs'>): boolean {
  return held.size === 0 && [...freed.values()].every((at) => now() - at >= restMs)
}

function isAlike(a: StoredBlock, b: StoredBlock): boolean {
  return a.block.cidr.bits === b.block.cidr.bits && addrBits(a.block.cidr.addr) === addrBits(b.block.cidr.addr)
}
