// SPDX-License-Identifier: Apache-2.0
/** Routes to the pods of other nodes, recognised as ours by their protocol number. Layer: agent/dataplane. */
import { constants } from 'node:os'
import type { RouteRow } from '#agent/compile/desired.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { listRoutes } from '#agent/interfaces/netlink/lists.ts'
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '#agent/interfaces/netlink/message.ts'
import {
  encodeRoute,
  encodeRouteRemoval,
  MAIN_TABLE,
  ROUTE_PROTOCOL,
  RTM_DELROUTE,
  RTM_NEWROUTE,
  type RouteMessage,
} from '#agent/interfaces/netlink/route.ts'
import { NetlinkError } from '#lib/base/errors.ts'
import { formatAddr, formatCidr, type Addr } from '#lib/base/ip.ts'
import type { Log } from '#lib/obs/log.ts'
import { failure, type Failure, type Outcome, type ReconcileStep } from '../reconcile/step.ts'
import { NO_ROUTES, routeLookupOf, type RouteLookup } from './route-lookup.ts'

const { EEXIST, ESRCH, ENODEV } = constants.errno

export interface RoutesOptions {
  readonly netlink: NetlinkExchange
  readonly log: Log
}

export class Routes {
  readonly #netlink: NetlinkExchange
  readonly #log: Log
  #wanted: ReadonlyMap<string, RouteRow> = new Map()
  #actual = new Map<string, OwnRoute>()
  #ways: RouteLookup = NO_ROUTES
  #targets: ReadonlySet<Addr> = new Set()
  /** to which we have looked for ways */
  #asked: ReadonlySet<Addr> = new Set()
  #left = new Set<string>()
  #stale = true
  readonly writes: ReconcileStep
  readonly removals: ReconcileStep

  constructor(options: RoutesOptions) {
    this.#netlink = options.netlink
    this.#log = options.log
    // apart from the table of that name
    this.writes = { name: 'host-routes', pending: () => !this.#stale && this.#missing().length > 0, apply: () => this.#write() }
    this.removals = { name: 'host-routes.remove', pending: () => !this.#stale && this.#surplus().length > 0, apply: () => this.#remove() }
  }

  /** `elsewhere`: the ways to these are looked for as well, and made by others. */
  setDesired(routes: readonly RouteRow[], elsewhere: readonly Addr[] = []): void {
    this.#wanted = new Map(routes.map((route) => [formatCidr(route.cidr), route]))
    this.#targets = new Set([...routes.map(({ via }) => via), ...elsewhere])
    if ([...this.#targets].some((addr) => !this.#asked.has(addr))) this.#stale = true
    if (!this.#stale) this.#sayLeft()
  }

  /** Next hops to the nodes that have routes, to pods whose routes another plugin makes, and the default routes.
   * Replaced when the kernel's routes are read again. */
  get ways(): RouteLookup {
    return this.#ways
  }

  get installed(): number {
    return this.#actual.size
  }

  /** What we know of the kernel's routes is not to be trusted any more. */
  markStale(): void {
    this.#stale = true
  }

  /** Lists our routes if that is needed, without which none is written; returns how many that had been there are
   * gone. Throws NetlinkError. */
  readBack(): number {
    if (!this.#stale) return 0
    const before = this.#actual
    const all = mainRoutes(this.#netlink)
    this.#actual = new Map(all.filter(isOurs).map((route) => [formatCidr(route.cidr), route]))
    const others = all.filter((route) => !isOurs(route))
    this.#asked = this.#targets
    this.#ways = routeLookupOf(others, this.#asked)
    this.#sayLeft()
    this.#stale = false
    return [...before.keys()].filter((key) => this.#wanted.has(key) && !this.#actual.has(key)).length
  }

  #missing(): [string, OwnRoute][] {
    return [...this.#wanted].flatMap(([key, route]): [string, OwnRoute][] => {
      const via = this.#gateway(route)
      return via === undefined || this.#actual.get(key)?.via === via ? [] : [[key, { cidr: route.cidr, via }]]
    })
  }

  /** The programs put packets for a node into the tunnel as they leave: they have to leave towards it, whatever is
   * in between. Without the tunnel a route can name a neighbour only: what is beyond a router is the network's to
   * know, and undefined here. */
  #gateway({ via, overlay }: RouteRow): Addr | undefined {
    const gateway = this.#ways.hops.get(via)?.gateway ?? via
    return overlay || gateway === via ? gateway : undefined
  }

  /** Each once, when it begins. */
  #sayLeft(): void {
    const left = [...this.#wanted].filter(([, route]) => this.#gateway(route) === undefined)
    for (const [key, { via }] of left)
      if (!this.#left.has(key))
        this.#log.info({ cidr: key, node: formatAddr(via), reason: 'beyond a router: the network has to know the way' }, 'route.skipped')
    this.#left = new Set(left.map(([key]) => key))
  }

  #surplus(): [string, OwnRoute][] {
    return [...this.#actual].filter(([key]) => {
      const wanted = this.#wanted.get(key)
      return wanted === undefined || this.#gateway(wanted) === undefined
    })
  }

  #write(): Outcome {
    return forEach(this.#missing(), (key, route) => {
      // another program's route to the same place is not overwritten: only one of ours may be replaced
      const how = this.#actual.has(key) ? NLM_F_REPLACE : NLM_F_EXCL
      try {
        this.#netlink.request({ what: `add route ${key}`, type: RTM_NEWROUTE, flags: NLM_F_CREATE | how, payload: encodeRoute(route) })
      } catch (thrown) {
        if (!(thrown instanceof NetlinkError) || thrown.errno !== EEXIST) throw thrown
        this.#stale = true
        throw new NetlinkError(`add route ${key}`, 'a route to there exists that is not ours', EEXIST)
      }
      this.#actual.set(key, route)
      this.#log.info({ cidr: key, via: route.via && formatAddr(route.via) }, 'route.added')
    })
  }

  #remove(): Outcome {
    return forEach(this.#surplus(), (key, route) => {
      removeRoute(this.#netlink, route)
      this.#actual.delete(key)
      this.#log.info({ cidr: key }, 'route.removed')
    })
  }
}

/** A route with our protocol number. `via`: its gateway; undefined: another process made the route in a form that we do
 * not use. */
export interface OwnRoute {
  readonly cidr: RouteRow['cidr']
  readonly via: Addr | undefined
}

/** All routes of ours in the main table. Throws NetlinkError. */
export function listOwnRoutes(netlink: NetlinkExchange): OwnRoute[] {
  return mainRoutes(netlink).filter(isOurs)
}

function isOurs(route: RouteMessage): boolean {
  return route.protocol === ROUTE_PROTOCOL
}

function mainRoutes(netlink: NetlinkExchange): RouteMessage[] {
  return listRoutes(netlink).filter(({ table }) => table === MAIN_TABLE)
}

/** One that is gone already is as good. Throws NetlinkError. */
export function removeRoute(netlink: NetlinkExchange, route: OwnRoute): void {
  const key = formatCidr(route.cidr)
  try {
    netlink.request({ what: `remove route ${key}`, type: RTM_DELROUTE, payload: encodeRouteRemoval(route) })
  } catch (thrown) {
    if (!(thrown instanceof NetlinkError) || (thrown.errno !== ESRCH && thrown.errno !== ENODEV)) throw thrown
  }
}

function forEach<T>(items: readonly [string, T][], run: (key: string, item: T) => void): Outcome {
  const failures: Failure[] = []
  for (const [key, item] of items) {
    try {
      run(key, item)
    } catch (thrown) {
      failures.push(failure(key, thrown))
    }
  }
  return { done: items.length - failures.length, failures }
}
