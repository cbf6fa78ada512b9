// SPDX-License-Identifier: Apache-2.0
/** Rows of `Desired` to map structs: names of interfaces become indexes, protocols numbers. Layer: agent/dataplane (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { ANY_V6, isAny, protocolNumber } from '#lib/base/ip.ts'
import type { AddrRow, BackendRow, FrontendRow } from '../compile/desired.ts'
import type { AddrInfo, Backend, BackendKey, Frontend, FrontendKey } from '../maps/shapes.ts'

/** undefined: there is no such interface now */
export type ResolveInterface = (name: string) => number | undefined

/** An address as C's "none": all zero in either family, while a frontend's any-address keeps its family. */
export function noneIfAny(addr: Addr): Addr {
  return isAny(addr) ? ANY_V6 : addr
}

export function frontendStructs(row: FrontendRow): readonly [FrontendKey, Frontend] {
  return [{ addr: row.key.addr, port: row.key.port, proto: protocolNumber(row.key.proto) }, row.value]
}

export function backendStructs(row: BackendRow): readonly [BackendKey, Backend] {
  return [row.key, { ...row.value, node: noneIfAny(row.value.node) }]
}

/** undefined while the row's interface is not there. */
export function addrStructs(row: AddrRow, resolve: ResolveInterface): readonly [Addr, AddrInfo] | undefined {
  const { kind, iface } = row.value
  const ifindex = iface === undefined ? 0 : resolve(iface)
  return ifindex === undefined ? undefined : [row.key.addr, { kind, ifindex }]
}
