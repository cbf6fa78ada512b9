// SPDX-License-Identifier: Apache-2.0
/** What the kernel still lacks of a pod before its first packet may come. Layer: agent/dataplane. */
import { ADDR_LOCAL_POD } from '#lib/base/bpf-constants.ts'
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { MapCodecs } from '#agent/maps/catalogue.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'
import { decodeText, textWriter } from '#agent/maps/byte-rows.ts'
import { DIRECTIONS, interfaceHook, type Place } from './attach/hook.ts'
import type { AddrMerger } from './policy/addr-merger.ts'
import type { MapTable } from './maps/map-table.ts'

export interface PodPlace {
  readonly iface: string
  /** of the device that has the name now, where that is known: what was seen under it may be one that went */
  readonly index?: number | undefined
  readonly addresses: readonly Addr[]
}

/** What an address lacks to be that of a pod behind this interface; undefined: nothing. */
export type AddressReadiness = (addr: Addr, ifindex: number) => string | undefined

export interface AddressReadinessOptions {
  readonly table: Pick<MapTable, 'actualAt'>
  readonly join: Pick<AddrMerger, 'isWaiting'>
  readonly codecs: MapCodecs<Addr, AddrInfo>
}

export function addressReadiness({ table, join, codecs }: AddressReadinessOptions): AddressReadiness {
  const keyOf = textWriter(codecs.key)
  return (addr, ifindex) => {
    const key = keyOf(addr)
    if (join.isWaiting(key)) return `the rules for ${formatAddr(addr)} are not in the kernel`
    const actual = table.actualAt(key)
    const info = actual === undefined ? undefined : decodeText(codecs.value, actual)
    return info?.kind === ADDR_LOCAL_POD && info.ifindex === ifindex ? undefined : `${formatAddr(addr)} is not in np_addrs as a pod's`
  }
}

export interface PodReadiness {
  readonly interfaces: Interfaces
  /** undefined: nothing is loaded */
  readonly address: AddressReadiness | undefined
  readonly isSettled: (place: Place) => boolean
}

/** The first step that is missing, in the order in which they come; undefined: all is there. */
export function missingStep({ iface, index, addresses }: PodPlace, { interfaces, address, isSettled }: PodReadiness): string | undefined {
  if (address === undefined) return 'the programs are not loaded'
  const device = interfaces.byName(iface)
  if (device === undefined || (index !== undefined && index !== device.index)) return `${iface} has not been seen yet`
  for (const addr of addresses) {
    const missing = address(addr, device.index)
    if (missing !== undefined) return missing
  }
  const hook = DIRECTIONS.map((direction) => interfaceHook(device, direction)).find((place) => !isSettled(place))
  return hook === undefined ? undefined : `no program runs at ${hook.key}`
}
