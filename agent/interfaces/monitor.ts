// SPDX-License-Identifier: Apache-2.0
/** Keeps the interface table, with what the kernel takes for the node itself, and hears by netlink of changes that
 * owners of routes, hooks and sysctls have to look at. Layer: agent/interfaces. */
import { errorCode } from '#lib/base/errors.ts'
import { Notifier } from '#lib/base/async/wait.ts'
import type { Log } from '#lib/obs/log.ts'
import { AF_INET, AF_INET6, decodeAddr, encodeAddrDump, RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR } from './netlink/addr.ts'
import { NetlinkExchange, type NetlinkTransport } from './netlink/exchange.ts'
import { decodeLink, encodeLinkDump, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK } from './netlink/link.ts'
import { decodeMessages, type NetlinkMessage } from './netlink/message.ts'
import {
  decodeRoute,
  encodeRouteDump,
  isDefaultRoute,
  isLocalRoute,
  ROUTE_PROTOCOL,
  routeProtocol,
  RTM_DELROUTE,
  RTM_GETROUTE,
  RTM_NEWROUTE,
} from './netlink/route.ts'
import { isClsactRemoval, RTM_DELQDISC, RTM_DELTFILTER } from './netlink/tc.ts'
import { InterfaceTable, type Interfaces } from './table.ts'

/** RTNLGRP_LINK, TC, IPV4_IFADDR, IPV4_ROUTE, IPV6_IFADDR, IPV6_ROUTE, IPV4_NETCONF, IPV6_NETCONF */
export const MONITOR_GROUPS = [1, 4, 5, 7, 9, 11, 24, 25] as const
/** that a sysctl of forwarding or of reverse paths was set, or is there for a new interface */
const RTM_NEWNETCONF = 80
/** Room for a burst of a few thousand events while we are busy; more is found again by a full dump. */
export const MONITOR_BUFFER_BYTES = 4 << 20

const SYNC_ATTEMPTS = 10

export interface MonitorEvents {
  /** names of interfaces that came, went or differ, themselves or in their local routes, once a batch; in no order */
  interfacesChanged(names: ReadonlySet<string>): void
  /** a route of ours was removed, even by us, or a default route is another */
  routesChanged(): void
  /** a filter or its clsact was removed, or a sysctl of forwarding or reverse paths is another, even by us */
  hooksOrSysctlsChanged(): void
  /** events were lost. The interface table has been read again; owners must check their routes and hooks */
  overrun(): void
}

export interface MonitorOptions {
  /** joined to {@link MONITOR_GROUPS} */
  readonly socket: NetlinkTransport
  readonly log: Log
}

export class InterfaceMonitor implements Disposable {
  /** after {@link MonitorEvents.interfacesChanged}, for those who wait for an interface */
  readonly changed = new Notifier()
  readonly #socket: NetlinkTransport
  readonly #log: Log
  readonly #exchange: NetlinkExchange
  readonly #table = new InterfaceTable((name) => this.#names.add(name))
  #names = new Set<string>()
  #routes = false
  #hooksOrSysctls = false
  /** undefined: nothing is to be heard of */
  #events: MonitorEvents | undefined

  constructor(options: MonitorOptions) {
    this.#socket = options.socket
    this.#log = options.log
    this.#exchange = new NetlinkExchange(options.socket, (message) => {
      this.#take(message)
    })
  }

  get interfaces(): Interfaces {
    return this.#table
  }

  /** Reads everything there is; when it returns the table is complete, and `events` hears of it and of what changes.
   * Throws NetlinkError. */
  start(events?: MonitorEvents): void {
    this.#events = events
    this.#sync()
    this.#flush()
    this.#socket.onReadable(() => {
      this.#drain()
    })
  }

  /** Reads everything again, as after an overrun: an agent that was away does not know what it missed. Throws
   * NetlinkError. */
  resync(): void {
    this.#sync()
    this.#flush()
    this.#events?.overrun()
  }

  [Symbol.dispose](): void {
    this.#socket.onReadable(undefined)
    this.#socket.close()
  }

  /** The dump and the events come through one socket, so they are in the kernel's order: the last word is right.
   * Events from before the dump must not be heard, for what took them back may have been lost. An incomplete list
   * may not take anything away, so under endless change the table may for a while know too much. */
  #sync(): void {
    for (let attempt = 1; attempt <= SYNC_ATTEMPTS; attempt++) {
      this.#exchange.discard()
      this.#table.beginSync()
      const take = (message: NetlinkMessage): void => {
        this.#take(message)
      }
      const links = this.#exchange.dumpOnce({ what: 'list interfaces', type: RTM_GETLINK, payload: encodeLinkDump() }, take)
      const addresses = this.#exchange.dumpOnce({ what: 'list addresses', type: RTM_GETADDR, payload: encodeAddrDump() }, take)
      const routes = [AF_INET, AF_INET6].map((family) =>
        this.#exchange.dumpOnce({ what: 'list routes', type: RTM_GETROUTE, payload: encodeRouteDump(family) }, (message) => {
          this.#takeLocalRoute(message)
        }),
      )
      if (links && addresses && !routes.includes(false)) {
        this.#table.endSync()
        return
      }
    }
    this.#log.warn({ attempts: SYNC_ATTEMPTS }, 'interfaces.sync-failed')
  }

  #drain(): void {
    let overruns = 0
    for (;;) {
      try {
        const datagram = this.#socket.receive()
        if (datagram === undefined) break
        for (const message of decodeMessages(datagram)) this.#take(message)
      } catch (thrown) {
        if (errorCode(thrown) !== 'ENOBUFS' || ++overruns > SYNC_ATTEMPTS) throw thrown
        this.#log.warn({}, 'interfaces.overflowed')
        this.#sync()
      }
    }
    this.#flush()
    if (overruns > 0) this.#events?.overrun()
  }

  #flush(): void {
    const names = this.#names
    if (names.size > 0) {
      this.#names = new Set()
      this.#events?.interfacesChanged(names)
      this.changed.notify()
    }
    if (this.#routes) {
      this.#routes = false
      this.#events?.routesChanged()
    }
    if (this.#hooksOrSysctls) {
      this.#hooksOrSysctls = false
      this.#events?.hooksOrSysctlsChanged()
    }
  }

  #take(message: NetlinkMessage): void {
    switch (message.type) {
      case RTM_NEWLINK:
      case RTM_DELLINK: {
        const link = decodeLink(message.payload)
        if (link === undefined) return
        if (message.type === RTM_NEWLINK) this.#table.link(link)
        else this.#table.linkGone(link.index)
        return
      }
      case RTM_NEWADDR:
      case RTM_DELADDR: {
        const address = decodeAddr(message.payload)
        if (address === undefined) return
        if (message.type === RTM_NEWADDR) this.#table.address(address)
        else this.#table.addressGone(address)
        return
      }
      case RTM_NEWROUTE:
        this.#takeLocalRoute(message)
        this.#routes ||= isDefaultRoute(message.payload)
        return
      case RTM_DELROUTE:
        this.#takeLocalRoute(message)
        this.#routes ||= isDefaultRoute(message.payload) || routeProtocol(message.payload) === ROUTE_PROTOCOL
        return
      case RTM_DELQDISC:
      case RTM_DELTFILTER:
        this.#hooksOrSysctls ||= isClsactRemoval(message)
        return
      case RTM_NEWNETCONF:
        this.#hooksOrSysctls = true
    }
  }

  #takeLocalRoute({ type, payload }: NetlinkMessage): void {
    const route = isLocalRoute(payload) ? decodeRoute(payload) : undefined
    if (route === undefined) return
    if (type === RTM_NEWROUTE) this.#table.localRoute(route)
    else this.#table.localRouteGone(route)
  }
}
