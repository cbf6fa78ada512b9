// SPDX-License-Identifier: Apache-2.0
/** What the tables say of addresses, and what is to be written when that changes. Layer: agent/compile (pure). */
import { depthOf, prefixKey } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { NO_END_SETS } from '../tables.ts'
import type { EndValue, Epoch, HostValue, PolicyRowOf } from '../tables.ts'
import type { Move, Moves, Targets } from './plan.ts'

type EndRow = PolicyRowOf<'ends'>
type NetRow = PolicyRowOf<'nets'>
type HostRow = PolicyRowOf<'hosts'>

export class WrittenRows {
  readonly #ends: Map<Addr, EndValue>
  readonly #nets: Map<string, NetRow>
  readonly #hosts = new Map<string, HostRow>()
  readonly #goneEnds = new Map<Addr, EndRow>()
  readonly #goneHosts = new Map<string, HostRow>()
  readonly #goneNets = new Map<string, NetRow>()
  #epoch: Epoch = 'same'

  /** What is there at the beginning. */
  constructor(
    { ends, nets }: { readonly ends: Iterable<readonly [Addr, EndValue]>; readonly nets: Iterable<NetRow> } = { ends: [], nets: [] },
  ) {
    this.#ends = new Map(ends)
    this.#nets = new Map([...nets].map((row) => [prefixKey(row.key.cidr.addr, depthOf(row.key.cidr)), row]))
  }

  endAt(addr: Addr): EndValue | undefined {
    return this.#ends.get(addr)
  }

  hostAt(endpoint: string): HostValue | undefined {
    return this.#hosts.get(endpoint)?.value
  }

  get isEmpty(): boolean {
    return this.#ends.size + this.#hosts.size === 0
  }

  get netCount(): number {
    return this.#nets.size
  }

  hasNet(key: string): boolean {
    return this.#nets.has(key)
  }

  get hosts(): Iterable<string> {
    return this.#hosts.keys()
  }

  /** Rows by which addresses get other identities: those that had no row before the prefix around them moves. */
  reassign({ ends, nets }: Targets): readonly (EndRow | NetRow)[] {
    const netRows: NetRow[] = []
    for (const [key, { cidr, identity }] of nets) {
      if (identity === undefined) this.#deleteNet(key)
      else if (this.#nets.get(key)?.value.identity !== identity) netRows.push(this.#setNet(key, cidr, identity))
    }
    const endRows: EndRow[] = []
    for (const [addr, identity] of ends) {
      const before = this.#ends.get(addr)
      if (identity === undefined) this.#deleteEnd(addr)
      else if (before?.identity !== identity) endRows.push(this.#setEnd(addr, { ...(before ?? NO_END_SETS), identity }))
    }
    return [...endRows, ...netRows.sort((a, b) => depthOf(b.key.cidr) - depthOf(a.key.cidr))]
  }

  /** Rows by which endpoints get their rulesets. */
  switchEnds(addrs: Iterable<Addr>, wanted: (addr: Addr) => EndValue | undefined): readonly EndRow[] {
    const rows: EndRow[] = []
    for (const addr of addrs) {
      const after = wanted(addr)
      const before = this.#ends.get(addr)
      if (after !== undefined && !isSame(before, after)) rows.push(this.#setEnd(addr, after))
    }
    return rows
  }

  /** The same of host endpoints. */
  switchHosts(keys: Iterable<string>, wanted: (key: string) => HostValue | undefined): readonly HostRow[] {
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

  /** Of what was reassigned and switched since this was last asked. */
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

  /** Rows of prefixes that are as those around them, or that new endpoints needed meanwhile; wide ones first. */
  takeGoneNets(): readonly NetRow[] {
    const rows = [...this.#goneNets.values()].sort((a, b) => depthOf(a.key.cidr) - depthOf(b.key.cidr))
    this.#goneNets.clear()
    return rows
  }

  #setEnd(addr: Addr, value: EndValue): EndRow {
    const isNew = !this.#ends.has(addr)
    this.#epoch = isNew && this.#epoch !== 'next' ? 'newcomers' : 'next'
    this.#ends.set(addr, value)
    this.#goneEnds.delete(addr)
    return { table: 'ends', key: { addr }, value }
  }

  #setNet(key: string, cidr: Cidr, identity: number): NetRow {
    const row: NetRow = { table: 'nets', key: { cidr }, value: { identity } }
    this.#epoch = 'next'
    this.#nets.set(key, row)
    this.#goneNets.delete(key)
    return row
  }

  #deleteEnd(addr: Addr): void {
    const value = this.#ends.get(addr)
    if (value === undefined) return
    this.#goneEnds.set(addr, { table: 'ends', key: { addr }, value })
    this.#ends.delete(addr)
  }

  #deleteNet(key: string): void {
    const row = this.#nets.get(key)
    if (row === undefined) return
    this.#epoch = 'next'
    this.#goneNets.set(key, row)
    this.#nets.delete(key)
  }
}

/** Without anything between. */
export function targetsOf({ ends, nets }: Moves<Move>): Targets {
  const identityOf = ({ isGone, now }: Move): number | undefined => (isGone ? undefined : now.id)
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
