// SPDX-License-Identifier: Apache-2.0
/** Sets of prefixes → rows. Layer: agent/compile (pure). */
import { addrBits, cidrContains, formatCidr, isV4 } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { Family, Service } from '#lib/model/service.ts'
import type { ListId, RangeRow } from './desired.ts'

/** Each prefix once, sorted. */
export function rangeRows(set: ListId, cidrs: readonly Cidr[]): readonly RangeRow[] {
  const distinct = new Map(cidrs.map((cidr) => [formatCidr(cidr), cidr]))
  const rows = [...distinct.values()].map((cidr): RangeRow => ({ table: 'ranges', key: { set, cidr }, value: undefined }))
  return rows.sort((a, b) => compareText(a.key.cidr.addr, b.key.cidr.addr) || a.key.cidr.bits - b.key.cidr.bits)
}

/** The prefix of one address. */
export function wholeCidr(addr: Addr): Cidr {
  return { addr, bits: addrBits(addr) }
}

/** Sources that may use the load balancer's addresses of one family. Where this node may, what it sends to such an
 * address of its own has that address as source too, so it may as well. */
export function sourcesOf(service: Service, family: Family, selfAddresses: readonly Addr[]): readonly Cidr[] {
  const v4 = family === 'IPv4'
  const ranges = (service.loadBalancerSourceRanges ?? []).filter(({ addr }) => isV4(addr) === v4)
  const nodeMay = ranges.some((cidr) => selfAddresses.some((addr) => cidrContains(cidr, addr)))
  return nodeMay ? [...ranges, ...service.loadBalancerIPs.filter((addr) => isV4(addr) === v4).map(wholeCidr)] : ranges
}
