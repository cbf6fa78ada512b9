// SPDX-License-Identifier: Apache-2.0
/** Rows that only the node itself can know: its own addresses, and its devices. Layer: agent/dataplane (pure). */
import {
  ADDR_NODE_PORTS,
  ADDR_SELF,
  ADDR_SERVICE,
  IFACE_HOST,
  IFACE_WORKLOAD,
  RANGE_NODE_PORTS,
  RANGE_OWN,
} from '#lib/base/bpf-constants.ts'
import { compareText, type Compare } from '#lib/base/order.ts'
import { cidrContains, isWithin, type Cidr } from '#lib/base/ip.ts'
import { isMac, NO_MAC } from '#lib/base/mac.ts'
import type { AddrRow, Fragment } from '#agent/compile/desired.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { MapCodecs } from '#agent/maps/catalogue.ts'
import type { Codec } from '#agent/maps/codec.ts'
import type { AddrInfo, Iface } from '#agent/maps/shapes.ts'
import { decodeText } from '#agent/maps/byte-rows.ts'
import type { Claim } from '../maps/key-owners.ts'
import { rangeRows } from '#agent/compile/prefix-sets.ts'
import { setId } from '#agent/compile/services/list-ids.ts'
import { selfAddresses, selfPrefixes, type Device } from './devices.ts'

/** Owner of these rows. */
export const SELF_OWNER = 'node/self'

/** Order of claims when several owners say what an address is: the cluster's pods and nodes, then our own interfaces,
 * then the service whose cluster address it is, then services that are reached there from outside. `codec`: of the
 * rows. */
export function addressClaims(codec: Codec<AddrInfo>): Compare<Claim> {
  const rank = ({ owner, value }: Claim): number =>
    !owner.startsWith('Service/') ? 0 : decodeText(codec, value).kind === ADDR_SERVICE ? 1 : 2
  return (a, b) => rank(a) - rank(b) || compareText(a.owner, b.owner)
}

const IFACE_KIND = { workload: IFACE_WORKLOAD, host: IFACE_HOST } as const

/** All that this node answers on: rows of its addresses, and sets of the prefixes that are its own. `nodePorts`: where
 * node ports are served; empty: everywhere. */
export function selfFragment(interfaces: Interfaces, nodePorts: readonly Cidr[]): Fragment {
  const addresses = selfAddresses(interfaces).map((addr): AddrRow => ({
    table: 'addrs',
    key: { addr },
    value: { kind: ADDR_SELF, flags: nodePorts.length === 0 || isWithin(nodePorts, addr) ? ADDR_NODE_PORTS : 0, iface: undefined },
  }))
  const own = selfPrefixes(interfaces)
  const served = nodePorts.length === 0 ? own : own.flatMap((prefix) => nodePorts.flatMap((cidr) => overlapOf(prefix, cidr) ?? []))
  return { owner: SELF_OWNER, rows: [...addresses, ...rangeRows(setId(RANGE_OWN), own), ...rangeRows(setId(RANGE_NODE_PORTS), served)] }
}

/** The longer one, if the other contains it. */
function overlapOf(a: Cidr, b: Cidr): Cidr | undefined {
  const [outer, inner] = a.bits < b.bits ? [a, b] : [b, a]
  return cidrContains(outer, inner.addr) ? inner : undefined
}

/** Indexes of pods' interfaces among these rows. */
export function vethsIn(rows: ReadonlyMap<string, string>, { key, value }: MapCodecs<number, Iface>): ReadonlySet<number> {
  const isVeth = (row: string): boolean => decodeText(value, row).kind === IFACE_WORKLOAD
  return new Set([...rows].flatMap(([index, row]) => (isVeth(row) ? [decodeText(key, index)] : [])))
}

/** By index, what the programs have to know of the devices they run on. Devices without an Ethernet address have an
 * all-zero one. */
export function ifaceRows(devices: readonly Device[]): (readonly [number, Iface])[] {
  return devices.map(({ kind, iface }) => [
    iface.index,
    { mtu: iface.mtu, kind: IFACE_KIND[kind], mac: isMac(iface.mac) ? iface.mac : NO_MAC },
  ])
}
