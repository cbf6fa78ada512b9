// SPDX-License-Identifier: Apache-2.0
/** Route messages of the main table: what we add, and what a dump says. Layer: agent/interfaces (pure). */
import { addrFromBytes, ANY_V4, ANY_V6, isV4, type Addr, type Cidr } from '#lib/base/ip.ts'
import { AF_INET, AF_INET6, bareAddr } from './addr.ts'
import { attributeU32, decodeAttributes, encodeAttribute, encodeAttributeU32 } from './message.ts'

export const RTM_NEWROUTE = 24
export const RTM_DELROUTE = 25
export const RTM_GETROUTE = 26

/** The number in a route's protocol field that says it is ours. */
export const ROUTE_PROTOCOL = 80
/** Protocol number of routes that belong to a device of ours: they go with it, so no agent has to remove them. */
export const DEVICE_ROUTE_PROTOCOL = 81

export interface RouteMessage {
  readonly cidr: Cidr
  readonly table: number
  readonly protocol: number
  /** undefined: no gateway, or several next hops */
  readonly via: Addr | undefined
  /** output interface, 0 when the route names none */
  readonly device: number
  readonly priority: number
}

export const MAIN_TABLE = 254
export const LOCAL_TABLE = 255
const HEADER = 12
const RTA_DST = 1
const RTA_OIF = 4
const RTA_GATEWAY = 5
const RTA_PRIORITY = 6
const RTA_TABLE = 15
const RTN_UNSPEC = 0
const RTN_UNICAST = 1
const RTN_LOCAL = 2
const RT_SCOPE_UNIVERSE = 0
const RT_SCOPE_LINK = 253
const RTNH_F_ONLINK = 4

/** Payload of RTM_DELROUTE for a route with our protocol number in the main table, of whatever type: an older version
 * has made some that drop. The gateway may be left out. */
export function encodeRouteRemoval(route: { readonly cidr: Cidr; readonly via: Addr | undefined }): Buffer {
  const payload = encodeRoute(route)
  payload.writeUInt8(RTN_UNSPEC, 7)
  return payload
}

/** Payload of RTM_NEWROUTE for a route of ours in the main table. */
export function encodeRoute(route: { readonly cidr: Cidr; readonly via: Addr | undefined }): Buffer {
  const gateway = route.via === undefined ? [] : [encodeAttribute(RTA_GATEWAY, bareAddr(route.via))]
  return Buffer.concat([unicast(route.cidr, ROUTE_PROTOCOL), encodeAttribute(RTA_DST, bareAddr(route.cidr.addr)), ...gateway])
}

/** Payload of RTM_NEWROUTE for a route by this device, which goes when the device does. The gateway is taken to be
 * on the link. */
export function encodeDeviceRoute(route: { readonly cidr: Cidr; readonly device: number; readonly via?: Addr }): Buffer {
  const { cidr, device, via } = route
  const header = unicast(cidr, DEVICE_ROUTE_PROTOCOL)
  if (via === undefined && isV4(cidr.addr)) header.writeUInt8(RT_SCOPE_LINK, 6)
  if (via !== undefined) header.writeUInt32LE(RTNH_F_ONLINK, 8)
  return Buffer.concat([
    header,
    ...(cidr.bits === 0 ? [] : [encodeAttribute(RTA_DST, bareAddr(cidr.addr))]),
    ...(via === undefined ? [] : [encodeAttribute(RTA_GATEWAY, bareAddr(via))]),
    encodeAttributeU32(RTA_OIF, device),
  ])
}

function unicast(cidr: Cidr, protocol: number): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt8(isV4(cidr.addr) ? AF_INET : AF_INET6, 0)
  header.writeUInt8(cidr.bits, 1)
  header.writeUInt8(MAIN_TABLE, 4)
  header.writeUInt8(protocol, 5)
  header.writeUInt8(RT_SCOPE_UNIVERSE, 6)
  header.writeUInt8(RTN_UNICAST, 7)
  return header
}

/** Payload of RTM_GETROUTE for a dump of one family. */
export function encodeRouteDump(family: number): Buffer {
  const header = Buffer.alloc(HEADER)
  header.writeUInt8(family, 0)
  return header
}

/** The protocol field alone: cheap enough for every event of a full routing table. */
export function routeProtocol(payload: Buffer): number {
  return payload.length < HEADER ? 0 : payload.readUInt8(5)
}

/** Of the main table; as cheap. */
export function isDefaultRoute(payload: Buffer): boolean {
  return payload.length >= HEADER && payload.readUInt8(1) === 0 && payload.readUInt8(4) === MAIN_TABLE
}

/** Does the kernel take what is routed so for the node itself? As cheap. */
export function isLocalRoute(payload: Buffer): boolean {
  return payload.length >= HEADER && payload.readUInt8(4) === LOCAL_TABLE && payload.readUInt8(7) === RTN_LOCAL
}

/** Undefined for broken bytes and other families. */
export function decodeRoute(payload: Buffer): RouteMessage | undefined {
  if (payload.length < HEADER) return undefined
  const family = payload.readUInt8(0)
  if (family !== AF_INET && family !== AF_INET6) return undefined
  const size = family === AF_INET ? 4 : 16
  const attributes = decodeAttributes(payload.subarray(HEADER))
  const destination = attributes.get(RTA_DST)
  const gateway = attributes.get(RTA_GATEWAY)
  if (destination !== undefined && destination.length !== size) return undefined
  const any = family === AF_INET ? ANY_V4 : ANY_V6
  return {
    cidr: { addr: destination === undefined ? any : addrFromBytes(destination), bits: payload.readUInt8(1) },
    table: attributeU32(attributes, RTA_TABLE) ?? payload.readUInt8(4),
    protocol: payload.readUInt8(5),
    via: gateway?.length === size ? addrFromBytes(gateway) : undefined,
    device: attributeU32(attributes, RTA_OIF) ?? 0,
    priority: attributeU32(attributes, RTA_PRIORITY) ?? 0,
  }
}
