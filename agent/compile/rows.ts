// SPDX-License-Identifier: Apache-2.0
/** Order and identity of rows. Layer: agent/compile (pure). */
import { formatAddr, isV4, protocolNumber } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { AddrRow, BackendRow, FrontendRow, Row } from './desired.ts'
import { ADDR_LOCAL_POD, ADDR_SELF, FRONTEND_EXTERNAL, FRONTEND_NODE_PORT } from '#lib/base/flags.ts'

export function compareFrontends(a: FrontendRow, b: FrontendRow): number {
  return compareText(a.key.addr, b.key.addr) || a.key.port - b.key.port || protocolNumber(a.key.proto) - protocolNumber(b.key.proto)
}

export function compareBackends(a: BackendRow, b: BackendRow): number {
  return compareText(a.key.service, b.key.service) || a.key.slot - b.key.slot
}

export function compareAddrs(a: AddrRow, b: AddrRow): number {
  return compareText(a.key.addr, b.key.addr)
}

/** Rows whose key two owners may both want. A backend's key is its service's own. */
export type ContestedRow = FrontendRow | AddrRow

export function isContested(row: Row): row is ContestedRow {
  return row.table !== 'backends'
}

/** Text by which the row's place is known. */
export function claimKey(row: ContestedRow): string {
  return row.table === 'addrs' ? row.key.addr : `${row.key.addr}${row.key.port}/${row.key.proto}`
}

/** Who gives way to whom: the lower rank stays. Nobody takes a cluster address from its service by naming it as an external one, nor the
 * node's own address by giving it to a pod. */
export function claimRank(row: ContestedRow): number {
  if (row.table === 'frontends') {
    if ((row.value.flags & FRONTEND_EXTERNAL) === 0) return 0
    return (row.value.flags & FRONTEND_NODE_PORT) !== 0 ? 1 : 2
  }
  if (row.value.kind === ADDR_SELF) return 0
  return row.value.kind === ADDR_LOCAL_POD ? 1 : 3
}

/** For messages: "10.96.0.1:80/TCP", "[fd00::1]:80/UDP", "10.0.0.7". */
export function contestedText(row: ContestedRow): string {
  const addr = formatAddr(row.key.addr)
  if (row.table === 'addrs') return addr
  return `${isV4(row.key.addr) ? addr : `[${addr}]`}:${row.key.port}/${row.key.proto}`
}
