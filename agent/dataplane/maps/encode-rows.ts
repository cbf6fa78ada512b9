// SPDX-License-Identifier: Apache-2.0
/** Rows of `Desired` to entries of maps: names of interfaces become indexes, protocols numbers.
 * Layer: agent/dataplane (pure). */
import { ADDR_ROUTED, FAILSAFE_V6 } from '#lib/base/bpf-constants.ts'
import { ANY_V6, isAny, isV4, depthOf, protocolNumber } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { RowOf, Table } from '../../compile/desired.ts'
import { NO_SET } from '../../compile/policy/tables.ts'
import { catalogue } from '../../maps/catalogue.ts'
import type { MapCodecs, MapDefinition } from '../../maps/catalogue.ts'
import { entryWriter } from '../../maps/byte-rows.ts'
import type { Entry } from '../../maps/byte-rows.ts'

/** Tables that are made of rows: what is referred to before what refers to it. */
export const ROW_TABLES = [
  'addrs',
  'spared',
  'failsafes',
  'ranges',
  'routes',
  'vteps',
  'backends',
  'live',
  'maglev',
  'frontends',
] as const satisfies readonly Table[]

/** undefined: there is no such interface now */
export type ResolveInterface = (name: string) => number | undefined

/** The codecs of a map, bound to the objects that are loaded. */
export type BindMap = <K, V>(definition: MapDefinition<K, V>) => MapCodecs<K, V>

/** How rows of each table are written; undefined for a row whose interface is not there. */
export type RowWriters = { readonly [T in Table]: (row: RowOf<T>, resolve: ResolveInterface) => Entry | undefined }

/** Policy has its own half of these rows. */
export const NO_RULES = { identity: 0, ingress: NO_SET, egress: NO_SET, staged_ingress: NO_SET, staged_egress: NO_SET }

/** Bits of `range_key.set`. */
const SET_BITS = 64
/** Bits of `failsafe_key` before the address. */
const FAILSAFE_BITS = 32

/** In the map's key. `direction`: FAILSAFE_IN or FAILSAFE_OUT; `addr`: of the other end. */
export function failsafeDirection(direction: number, addr: Addr): number {
  return direction | (isV4(addr) ? 0 : FAILSAFE_V6)
}

export function rowWriters(bind: BindMap): RowWriters {
  return {
    frontends: writer(bind(catalogue.np_frontends), ({ key, value }) => [{ ...key, proto: protocolNumber(key.proto) }, value]),
    backends: writer(bind(catalogue.np_backends), ({ key, value }) => [key, { ...value, node: noneIfAny(value.node) }]),
    live: writer(bind(catalogue.np_live), ({ key, value }) => [key, value]),
    maglev: writer(bind(catalogue.np_maglev), ({ key, value }) => [key.list, { slot: value.slots }]),
    ranges: writer(bind(catalogue.np_ranges), ({ key: { set, cidr } }) => [{ prefix: SET_BITS + depthOf(cidr), set, addr: cidr.addr }, 1]),
    routes: writer(bind(catalogue.np_routes), ({ key: { cidr }, value }) => [{ prefix: depthOf(cidr), addr: cidr.addr }, value]),
    vteps: writer(bind(catalogue.np_vteps), ({ key, value }) => [key.addr, value]),
    spared: writer(bind(catalogue.np_spared), ({ key }) => [key.slot, 1]),
    failsafes: writer(bind(catalogue.np_failsafes), ({ key: { direction, protocol, port, cidr } }) => [
      {
        prefix: FAILSAFE_BITS + depthOf(cidr),
        direction: failsafeDirection(direction, cidr.addr),
        proto: protocol,
        port,
        addr: cidr.addr,
      },
      1,
    ]),
    addrs: writer(bind(catalogue.np_addrs), ({ key, value: { kind, flags, iface } }, resolve) => {
      // what says that it is a pod of ours is not believed before there is its device; another plugin's is found by its
      // packets' way
      const ifindex = iface === undefined ? 0 : (resolve(iface) ?? ((flags & ADDR_ROUTED) === 0 ? 0 : undefined))
      return ifindex === undefined ? undefined : [key.addr, { kind, flags, ifindex, ...NO_RULES }]
    }),
  }
}

/** An address as C's "none": all zero in either family, while a frontend's any-address keeps its family. */
export function noneIfAny(addr: Addr): Addr {
  return isAny(addr) ? ANY_V6 : addr
}

/** Of the 16 bytes that C looks at: the other way round than `depthOf`. */
export function cidrOf({ prefix, addr }: { readonly prefix: number; readonly addr: Addr }): Cidr {
  return { addr, bits: prefix - depthOf({ addr, bits: 0 }) }
}

function writer<K, V, R>(
  codecs: MapCodecs<K, V>,
  structs: (row: R, resolve: ResolveInterface) => readonly [K, V] | undefined,
): (row: R, resolve: ResolveInterface) => Entry | undefined {
  const write = entryWriter(codecs)
  return (row, resolve) => {
    const both = structs(row, resolve)
    return both === undefined ? undefined : write(both)
  }
}
