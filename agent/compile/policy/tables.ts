// SPDX-License-Identifier: Apache-2.0
/** The rows by which the data plane judges flows. Layer: agent/compile (pure).
 *
 * The rules of an endpoint's direction stand in a line, a set, in blocks of 1,024. In each dimension packets fall
 * into classes, and each class has a bit for every rule whose condition in that dimension it meets; the first rule
 * that is met in all of them decides. */
import type { DIMENSION_OWN, DIMENSION_PEER, DIMENSION_PORT, DIMENSION_SOURCE_PORT } from '#lib/base/bpf-constants.ts'
import { depthOf, prefixKey, type Addr, type Cidr } from '#lib/base/ip.ts'
import type { Bits } from './rulesets/bits.ts'
import type { SLOTS } from './rules/groups.ts'

/** 16 hex digits, a hash of what is in the set; NO_SET: nothing is asked, everything is allowed. */
export type SetId = string
export const NO_SET: SetId = '0000000000000000'

/** Classes of DIMENSION_PEER and DIMENSION_OWN are identities, of the other end's and of this end's address. A peer
 * without a row is judged by RULES_UNKNOWN, an own address without one is class 0. */
export type Dimension = typeof DIMENSION_PEER | typeof DIMENSION_OWN | typeof DIMENSION_PORT | typeof DIMENSION_SOURCE_PORT

interface Contents {
  readonly bits: {
    readonly key: { readonly set: SetId; readonly class: number; readonly block: number; readonly dimension: Dimension }
    /** `sure`: what the whole set says to such a peer whatever else the packet is, rule * 4 + action; SURE_NOT */
    readonly value: { readonly word: Bits; readonly sure: number }
  }
  /** `proto` 0: any that has no row; `source` 1: of source ports, only where the row of destination ports says
   * PORTS_SOURCE */
  readonly ports: {
    readonly key: { readonly set: SetId; readonly block: number; readonly proto: number; readonly source: 0 | 1 }
    /** `blocks` of the set, `words` in use in this block, `begins`: in which of them stages begin; `cell`: a kind of
     * bits (RULES_…) behind the other, RULE_WORDS of each, with PORTS_SMALL one of each and behind them all
     * classes'; `at`: 256 classes or pages, by high byte (ICMP: type) */
    readonly value: {
      readonly blocks: number
      readonly words: number
      readonly flags: number
      readonly begins: number
      readonly cell: Bits
      readonly at: Uint16Array
    }
  }
  /** 256 classes, by low byte (ICMP: code) */
  readonly pages: {
    readonly key: { readonly set: SetId; readonly page: number }
    readonly value: { readonly class: Uint16Array }
  }
  readonly rules: {
    readonly key: { readonly set: SetId; readonly index: number }
    /** the number by which programs record the rule */
    readonly value: { readonly number: number }
  }
  /** addresses that no known endpoint has, by their longest prefix */
  readonly nets: {
    readonly key: { readonly cidr: Cidr }
    readonly value: { readonly identity: number }
  }
  /** addresses of endpoints; the sets are those of local ones, NO_SET on others */
  readonly ends: {
    readonly key: { readonly addr: Addr }
    readonly value: EndValue
  }
  /** host endpoints of this node: no map of their own, the dataplane knows which interfaces they mean */
  readonly hosts: {
    readonly key: { readonly endpoint: string }
    readonly value: HostValue
  }
}

export type HostSlot = keyof (typeof SLOTS)['host']

export interface HostSets {
  readonly sets: Readonly<Record<HostSlot, SetId>>
  readonly staged: Readonly<Record<HostSlot, SetId>>
}

export interface HostValue extends HostSets {
  readonly interfaceName: string | undefined
  readonly addrs: readonly Addr[]
}

export interface EndSets {
  readonly ingress: SetId
  readonly egress: SetId
  /** as things would be with the staged policies; the same as above where these change nothing */
  readonly stagedIngress: SetId
  readonly stagedEgress: SetId
}

export const NO_END_SETS: EndSets = { ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }

export interface EndValue extends EndSets {
  readonly identity: number
}

export type PolicyTable = keyof Contents
export type PolicyRowOf<T extends PolicyTable> = {
  readonly [P in T]: { readonly table: P; readonly key: Contents[P]['key']; readonly value: Contents[P]['value'] }
}[T]
export type PolicyRow = PolicyRowOf<PolicyTable>
export type SetRow = PolicyRowOf<'bits' | 'ports' | 'pages' | 'rules'>

/** Text by which a row's place is known, of all tables. */
export function rowKey(row: PolicyRow): string {
  switch (row.table) {
    case 'bits':
      return `bits ${row.key.set} ${row.key.block} ${row.key.dimension} ${row.key.class}`
    case 'ports':
      return `ports ${row.key.set} ${row.key.block} ${row.key.proto} ${row.key.source}`
    case 'pages':
      return `pages ${row.key.set} ${row.key.page}`
    case 'rules':
      return `rules ${row.key.set} ${row.key.index}`
    case 'nets':
      return `nets ${prefixKey(row.key.cidr.addr, depthOf(row.key.cidr))}`
    case 'ends':
      return `ends ${row.key.addr}`
    case 'hosts':
      return `hosts ${row.key.endpoint}`
  }
}

/** Whether flows that were judged before must be judged again. `newcomers`: addresses that no endpoint had, so there is
 * seldom a flow of them. */
export type Epoch = 'same' | 'newcomers' | 'next'

export type AddressRow = PolicyRowOf<'nets' | 'ends'>
export type EndpointRow = PolicyRowOf<'ends' | 'hosts'>

/** A part of a change that is to be finished before the next begins, so that every packet is judged by the rules
 * before or by those after. */
export type PolicyStep =
  /** new rulesets, whole, and what rulesets in use must know of new identities; nothing refers to these rows yet */
  | { readonly kind: 'add'; readonly rows: readonly SetRow[] }
  /** addresses get their identities; in this order, which has endpoints before prefixes, narrow ones before those
   * around them */
  | { readonly kind: 'reassign'; readonly rows: readonly AddressRow[] }
  /** endpoints get their rulesets, in one write each; first those that are others now, with their identity */
  | { readonly kind: 'switch'; readonly rows: readonly EndpointRow[] }
  /** from here on flows are judged again */
  | { readonly kind: 'epoch'; readonly epoch: Exclude<Epoch, 'same'> }
  /** rows that nothing refers to any longer, in this order, which has wide prefixes before narrow ones */
  | { readonly kind: 'delete'; readonly rows: readonly PolicyRow[] }
