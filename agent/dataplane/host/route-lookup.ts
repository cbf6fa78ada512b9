// SPDX-License-Identifier: Apache-2.0
/** The next hops to other nodes and to the rest of the world, by the kernel's routes. Layer: agent/dataplane (pure). */
import { isV4, type Addr } from '#lib/base/ip.ts'
import { compareNumbers } from '#lib/base/order.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import type { RouteMessage } from '#agent/interfaces/netlink/route.ts'

export interface Hop {
  /** of the next machine on the way; the address itself when that is a neighbour */
  readonly gateway: Addr
  /** index of the interface; 0: the route names none */
  readonly device: number
}

export interface RouteLookup {
  /** for each address that was asked about and has a route */
  readonly hops: ReadonlyMap<Addr, Hop>
  /** indexes of the interfaces of default routes, in order and each once */
  readonly defaults: readonly number[]
}

export const NO_ROUTES: RouteLookup = { hops: new Map(), defaults: [] }

/** Costs in proportion to the routes, and to the addresses times the lengths of prefixes. */
export function routeLookupOf(routes: readonly RouteMessage[], addrs: Iterable<Addr>): RouteLookup {
  const best = new PrefixMap<RouteMessage>()
  for (const route of routes) {
    const other = best.get(route.cidr)
    if (other === undefined || route.priority < other.priority) best.set(route.cidr, route)
  }
  const hops = [...addrs].flatMap((addr): [Addr, Hop][] => {
    const route = best.find(addr)
    // ::/0 is around addresses of IPv4 as well
    if (route === undefined || isV4(route.cidr.addr) !== isV4(addr)) return []
    return [[addr, { gateway: route.via ?? addr, device: route.device }]]
  })
  const defaults = new Set(routes.filter(({ cidr }) => cidr.bits === 0).map(({ device }) => device))
  return { hops: new Map(hops), defaults: [...defaults].sort(compareNumbers) }
}
