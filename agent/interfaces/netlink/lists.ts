// SPDX-License-Identifier: Apache-2.0
/** What the kernel has, as lists. All throw NetlinkError. Layer: agent/interfaces. */
import { AF_INET, AF_INET6, decodeAddr, encodeAddrDump, RTM_GETADDR, type AddrMessage } from './addr.ts'
import type { NetlinkExchange } from './exchange.ts'
import { decodeLink, encodeLinkDump, RTM_GETLINK, type LinkMessage } from './link.ts'
import { decodeRoute, encodeRouteDump, RTM_GETROUTE, type RouteMessage } from './route.ts'

export function listLinks(netlink: NetlinkExchange): LinkMessage[] {
  return netlink
    .dump({ what: 'list links', type: RTM_GETLINK, payload: encodeLinkDump() })
    .flatMap(({ payload }) => decodeLink(payload) ?? [])
}

export function listAddresses(netlink: NetlinkExchange): AddrMessage[] {
  return netlink
    .dump({ what: 'list addresses', type: RTM_GETADDR, payload: encodeAddrDump() })
    .flatMap(({ payload }) => decodeAddr(payload) ?? [])
}

/** Of all tables. */
export function listRoutes(netlink: NetlinkExchange, families: readonly number[] = [AF_INET, AF_INET6]): RouteMessage[] {
  return families.flatMap((family) =>
    netlink
      .dump({ what: 'list routes', type: RTM_GETROUTE, payload: encodeRouteDump(family) })
      .flatMap(({ payload }) => decodeRoute(payload) ?? []),
  )
}
