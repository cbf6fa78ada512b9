// SPDX-License-Identifier: Apache-2.0
/** What the tables say of addresses, and what is to be written when that changes. Layer: agent/compile (pure). */
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { AddressChanges, Move } from '../identities/addresses.ts'
import type { Identity } from '../identities/identities.ts'
import { depthOf } from '../identities/prefixes.ts'
import { NO_SET } from '../tables.ts'
import type { EndSets, EndValue, Epoch, HostValue, PolicyRowOf } from '../tables.ts'

export const NO_END_SETS: EndSets = { ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }

type EndRow = PolicyRowOf<'ends'>
type NetRow = PolicyRowOf<'nets'>
type HostRow = PolicyRowOf<'hosts'>

/** The identities that addresses and prefixes are to have; undefined: they are to have no row. */
export interface Targets {
  readonly ends: ReadonlyMap<Addr, Identity | undefined>
  readonly nets: ReadonlyMap<string, { readonly cidr: Cidr; readonly identity: Identity | undefined }>
}

export class WrittenRows {
  readonly #ends = new Map<Addr, EndValue>()
  readonly #nets = new Map<string, NetRow>()
  readonly #hosts = new Map<string, HostRow>()
  readonly #goneEnds = new Map<Addr, EndRow>()
  readonly #goneHosts = new Map<string, HostRow>()
  readonly #goneNets = new Map<string, NetRow>()
  #epoch: Epoch = 'same'

  endAt(addr: Addr): EndValue | undefined {
    return this.#ends.get(addr)
  }

  hostAt(endpoint: string): HostValue | undefined {
    return this.#hosts.get(endpoint)?.value
  }

  get hosts(): Iterable<string> {
    return this.#hosts.keys()
  }

  /** Rows by which addresses move to other identities: those that had no row before the prefix around them moves. */
  move({ ends, nets }: Targets): readonly (EndRow | NetRow)[] {
    const netRows: NetRow[] = []
    for (const [key, { cidr, identity }] of nets) {
      if (identity === undefined) this.#hideNet(key)
      else if (this.#nets.get(key)?.value.identity !== identity.id) netRows.push(this.#showNet(key, cidr, identity.id))
    }
    const endRows: EndRow[] = []
    for (const [addr, identity] of ends) {
      const before = this.#ends.get(addr)
      if (identity === undefined) this.#hideEnd(addr)
      else if (before?.identity !== identity.id) endRows.push(this.#showEnd(addr, { ...(before ?? NO_END_SETS), identity: identity.id }))
    }
    return [...endRows, ...netRows.sort((a, b) => depthOf(b.key.cidr) - depthOf(a.key.cidr))]
  }

  /** Rows by which endpoints get their sets. */
  flip(addrs: Iterable<Addr>, wanted: (addr: Addr) => EndValue | undefined): readonly EndRow[] {
    const rows: EndRow[] = []
    for (const addr of addrs) {
      const after = wanted(addr)
      const before = this.#ends.get(addr)
      if (after !== undefined && !isSame(before, after)) rows.push(this.#showEnd(addr, after))
    }
    return rows
  }

  /** The same of host endpoints. */
  flipHosts(keys: Iterable<string>, wanted: (key: string) => HostValue | undefined): readonly HostRow[] {
    const rows: HostRow[] = []
    for (const endpoint of keys) {
      const value = wanted(endpoint)
      const before = this.#hosts.get(endpoint)
      if (deepEqual(before?.value, value)) continue
      this.#epoch = 'next'
      if (value === undefined) {
        if (before !== undefined) this.#goneHosts.set(endpoint, before)
        this.#hosts.delete(endpoint)
      } else {
        const row: HostRow = { table: 'hosts', key: { endpoint }, value }
        this.#hosts.set(endpoint, row)
        this.#goneHosts.delete(endpoint)
        rows.push(row)
      }
    }
    return rows
  }

  /** Of what was moved and flipped since this was last asked. */
  takeEpoch(): Epoch {
    const epoch = this.#epoch
    this.#epoch = 'same'
    return epoch
  }

  /** Rows of addresses that no endpoint has any longer, and of host endpoints that are gone. */
  takeGoneEnds(): readonly (EndRow | HostRow)[] {
    const rows = [...this.#goneEnds.values(), ...this.#goneHosts.values()]
    this.#goneEnds.clear()
    this.#goneHosts.clear()
    return rows
  }

  /** Rows of prefixes that are as those around them, wide ones first. */
  takeGoneNets(): readonly NetRow[] {
    const rows = [...this.#goneNets.values()].sort((a, b) => depthOf(a.key.cidr) - depthOf(b.key.cidr))
    this.#goneNets.clear()
    return rows
  }

  #showEnd(addr: Addr, value: EndValue): EndRow {
    const isNew = !this.#ends.has(addr)
    this.#epoch = isNew && this.#epoch !== 'next' ? 'newcomers' : 'next'
    this.#ends.set(addr, value)
    this.#goneEnds.delete(addr)
    return { table: 'ends', key: { addr }, value }
  }

  #showNet(key: string, cidr: Cidr, identity: number): NetRow {
    const row: NetRow = { table: 'nets', key: { cidr }, value: { identity } }
    this.#epoch = 'next'
    this.#nets.set(key, row)
    this.#goneNets.delete(key)
    return row
  }

  #hideEnd(addr: Addr): void {
    const value = this.#ends.get(addr)
    if (value === undefined) return
    this.#goneEnds.set(addr, { table: 'ends', key: { addr }, value })
    this.#ends.delete(addr)
  }

  #hideNet(key: string): void {
    const row = this.#nets.get(key)
    if (row === undefined) return
    this.#epoch = 'next'
    this.#goneNets.set(key, row)
    this.#nets.delete(key)
  }
}

export function targetsOf({ ends, nets }: AddressChanges): Targets {
  const identityOf = ({ isGone, now }: Move): Identity | undefined => (isGone ? undefined : now)
  return {
    ends: new Map([...ends].map(([addr, move]) => [addr, identityOf(move)])),
    nets: new Map([...nets].map(([key, move]) => [key, { cidr: move.cidr, identity: identityOf(move) }])),
  }
}

function isSame(a: EndValue | undefined, b: EndValue): boolean {
  return (
    a !== undefined &&
    a.identity === b.identity &&
    a.ingress === b.ingress &&
    a.egress === b.egress &&
    a.stagedIngress === b.stagedIngress &&
    a.stagedEgress === b.stagedEgress
  )
}
