// SPDX-License-Identifier: Apache-2.0
/** The next hops to other nodes and to the rest of the world, by the kernel's routes. Layer: agent/dataplane (pure). */
import { addrBits, isV4, maskAddr, type Addr } from '#lib/base/ip.ts'
import { compareNumbers } from '#lib/base/order.ts'
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
  const lengths = new Map<number, Map<Addr, RouteMessage>>()
  for (const route of routes) {
    const length = lengthOf(route.cidr.addr, route.cidr.bits)
    const known = lengths.get(length) ?? new Map<Addr, RouteMessage>()
    const other = known.get(route.cidr.addr)
    if (other === undefined || route.priority < other.priority) known.set(route.cidr.addr, route)
    lengths.set(length, known)
  }
  const longest = [...lengths].sort(([a], [b]) => b - a)
  const hops = [...addrs].flatMap((addr): [Addr, Hop][] => {
    const route = longest.flatMap(([length, known]) => routeOf(known, prefixOf(addr, length))).at(0)
    return route === undefined ? [] : [[addr, { gateway: route.via ?? addr, device: route.device }]]
  })
  const defaults = new Set(routes.filter(({ cidr }) => cidr.bits === 0).map(({ device }) => device))
  return { hops: new Map(hops), defaults: [...defaults].sort(compareNumbers) }
}

/** Lengths of both families on one scale: those of IPv6 from 0, those of IPv4 from 1000. */
function lengthOf(addr: Addr, bits: number): number {
  return isV4(addr) ? 1000 + bits : bits
}

function routeOf(known: ReadonlyMap<Addr, RouteMessage>, prefix: Addr | undefined): readonly RouteMessage[] {
  const route = prefix === undefined ? undefined : known.get(prefix)
  return route === undefined ? [] : [route]
}

function prefixOf(addr: Addr, length: number): Addr | undefined {
  const bits = isV4(addr) ? length - 1000 : length
  return bits < 0 || bits > addrBits(addr) ? undefined : maskAddr(addr, bits)
}
