// SPDX-License-Identifier: Apache-2.0
/** Order and identity of rows. Layer: agent/compile (pure). */
import { formatAddr, formatCidr, isV4, protocolNumber, type Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { AddrRow, FrontendRow, OverlayRow, Row, VtepRow } from './desired.ts'
import {
  ADDR_EXTERNAL,
  ADDR_LOCAL_POD,
  ADDR_NODE,
  ADDR_SELF,
  ADDR_SERVICE,
  FRONTEND_EXTERNAL,
  FRONTEND_NODE_PORT,
} from '#lib/base/bpf-constants.ts'

export function compareFrontends(a: FrontendRow, b: FrontendRow): number {
  return compareText(a.key.addr, b.key.addr) || a.key.port - b.key.port || protocolNumber(a.key.proto) - protocolNumber(b.key.proto)
}

export function compareAddrs(a: AddrRow, b: AddrRow): number {
  return compareText(a.key.addr, b.key.addr)
}

/** Rows whose key two owners may want with another value each. A backend's key belongs to its service alone. Services
 * may share an address, and any other owner of it goes before them all. The dataplane decides that, since it knows
 * more addresses than the compiler. */
export type ContestedRow = FrontendRow | AddrRow | OverlayRow | VtepRow

export function isContested(row: Row): row is ContestedRow {
  if (row.table === 'addrs') return !isServices(row)
  return row.table === 'frontends' || row.table === 'routes' || row.table === 'vteps'
}

/** Is it a service that has this address? */
export function isServices({ value }: AddrRow): boolean {
  return value.kind === ADDR_SERVICE || (value.flags & ADDR_EXTERNAL) !== 0
}

/** Text by which the row's place is known. */
export function claimKey(row: ContestedRow): string {
  switch (row.table) {
    case 'addrs':
      return row.key.addr
    case 'frontends':
      return frontendClaim(row.key)
    case 'vteps':
      return `vtep ${row.key.addr}`
    case 'routes':
      return `route ${row.key.cidr.addr}/${row.key.cidr.bits}`
  }
}

export function frontendClaim({ addr, port, proto }: FrontendRow['key']): string {
  return `${addr}${port}/${proto}`
}

/** The owner with the lower rank keeps the key. A service cannot take another's cluster address by naming it as an
 * external one, and a pod cannot take the node's own address. `given`: addresses of the row's service that a controller
 * has given to it: they go before those that its author has named. */
export function claimRank(row: ContestedRow, given?: ReadonlySet<Addr>): number {
  if (row.table === 'routes' || row.table === 'vteps') return 0
  if (row.table === 'frontends') {
    if ((row.value.flags & FRONTEND_EXTERNAL) === 0) return 0
    if ((row.value.flags & FRONTEND_NODE_PORT) !== 0) return 1
    return given?.has(row.key.addr) === true ? 2 : 3
  }
  return ADDR_RANKS.get(row.value.kind) ?? ADDR_RANKS.size
}

const ADDR_RANKS = new Map([ADDR_SELF, ADDR_LOCAL_POD, ADDR_NODE].map((kind, rank) => [kind, rank]))

/** For messages: "10.96.0.1:80/TCP", "[fd00::1]:80/UDP", "10.0.0.7". */
export function contestedText(row: ContestedRow): string {
  if (row.table === 'routes') return formatCidr(row.key.cidr)
  const addr = formatAddr(row.key.addr)
  if (row.table !== 'frontends') return addr
  return `${isV4(row.key.addr) ? addr : `[${addr}]`}:${row.key.port}/${row.key.proto}`
}
