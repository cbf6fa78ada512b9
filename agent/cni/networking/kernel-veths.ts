// SPDX-License-Identifier: Apache-2.0
/** Makes pods' veths by netlink: both ends, and what is set on them. Layer: agent/cni. */
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { writeInNetns } from '#native'
import { errorCode, NetlinkError } from '#lib/base/errors.ts'
import { addrBits, ANY_V4, ANY_V6, formatAddr, isV4, type Addr } from '#lib/base/ip.ts'
import { Notifier } from '#lib/base/async/wait.ts'
import { AF_INET6, encodeSingleAddr, RTM_NEWADDR } from '#agent/interfaces/netlink/addr.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import {
  decodeLink,
  encodeLinkQuestion,
  encodeLinkRemoval,
  encodeLinkUp,
  encodeVeth,
  RTM_DELLINK,
  RTM_GETLINK,
  RTM_NEWLINK,
  type LinkMessage,
} from '#agent/interfaces/netlink/link.ts'
import { listAddresses, listRoutes } from '#agent/interfaces/netlink/lists.ts'
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '#agent/interfaces/netlink/message.ts'
import { encodeNeighbour, RTM_NEWNEIGH } from '#agent/interfaces/netlink/neighbour.ts'
import { encodeDeviceRoute, LOCAL_TABLE, RTM_NEWROUTE } from '#agent/interfaces/netlink/route.ts'
import { POD_GATEWAYS } from '#agent/interfaces/pod-gateways.ts'
import { inNetns, watchNetns } from './netns.ts'
import type { RaisedVeth, VethMaker } from './own-networking.ts'
import { familiesOf, macOf, type PodVeth } from './pod-veth.ts'

const { ENODEV } = constants.errno
/** RTNLGRP_IPV6_ROUTE */
const IPV6_ROUTES = 11
const DEFAULTS = { v4: { addr: ANY_V4, bits: 0 }, v6: { addr: ANY_V6, bits: 0 } } as const

export interface KernelVethsOptions {
  /** in the node's network namespace */
  readonly netlink: NetlinkExchange
  /** interfaces of the node differ from before */
  readonly interfaces: Notifier
}

export class KernelVeths implements VethMaker {
  readonly #node: NetlinkExchange
  readonly #interfaces: Notifier

  constructor({ netlink, interfaces }: KernelVethsOptions) {
    this.#node = netlink
    this.#interfaces = interfaces
  }

  create(veth: PodVeth): void {
    const { host, ifname, netns, mtu } = veth
    this.#remove(host)
    const netnsFd = openSync(netns, 'r')
    try {
      const peer = { name: ifname, mac: macOf(veth, 'pod'), mtu, netnsFd }
      const payload = encodeVeth({ name: host, mac: macOf(veth, 'node'), mtu }, peer)
      const what = `add ${host}, and ${ifname} in ${netns}`
      this.#node.request({ what, type: RTM_NEWLINK, flags: NLM_F_CREATE | NLM_F_EXCL, payload })
    } finally {
      closeSync(netnsFd)
    }
  }

  raise(veth: PodVeth): RaisedVeth {
    const host = vethOf(this.#node, veth.host)
    if (host === undefined) throw new NetlinkError(`raise ${veth.host}`, 'no such device', ENODEV)
    const routes = new Notifier()
    const watch = watchNetns(veth.netns, [IPV6_ROUTES], routes)
    try {
      const set = setter(this.#node, host.index)
      set.up(veth.containerId)
      for (const addr of veth.addresses) {
        // asked for, they would answer: but by IPv6 a device cannot ask before it is sure of its own address, for up to
        // two seconds
        set.neighbour(addr, macOf(veth, 'pod'))
        set.route({ addr, bits: addrBits(addr) })
      }
      inNetns(veth.netns, (pod) => {
        raiseInside(pod, veth)
      })
    } catch (thrown) {
      watch[Symbol.dispose]()
      throw thrown
    }
    return { missing: () => this.#missing(veth), changed: [this.#interfaces, routes], [Symbol.dispose]: () => watch[Symbol.dispose]() }
  }

  remove({ host, containerId }: Pick<PodVeth, 'host' | 'containerId'>): void {
    if ((vethOf(this.#node, host)?.alias ?? containerId) === containerId) this.#remove(host)
  }

  whatDiffers(veth: PodVeth): string | undefined {
    const host = vethOf(this.#node, veth.host)
    if (host === undefined) return `${veth.host} is gone`
    if (!host.up) return `${veth.host} is down`
    if (host.alias !== undefined && host.alias !== veth.containerId) return `${veth.host} is that of the sandbox ${host.alias}`
    if (host.mac !== macOf(veth, 'node')) return `${veth.host} has the hardware address ${host.mac ?? ''}`
    return inNetns(veth.netns, (pod) => whatDiffersInside(pod, veth))
  }

  /** Whosever it is. The pod's end goes along. */
  #remove(host: string): void {
    unlessGone(() => {
      this.#node.request({ what: `remove ${host}`, type: RTM_DELLINK, payload: encodeLinkRemoval(host) })
    })
  }

  /** The end that goes up first takes packets a while after the other one is up; and an address of IPv6 is the pod's
   * when its local route is there, with or without a search for duplicates. */
  #missing(veth: PodVeth): string | undefined {
    if (vethOf(this.#node, veth.host)?.running !== true) return `${veth.host} has no carrier`
    const wanted = veth.addresses.filter((addr) => !isV4(addr))
    if (wanted.length === 0) return undefined
    const local = inNetns(veth.netns, (pod) => listRoutes(pod, [AF_INET6])).filter(({ table }) => table === LOCAL_TABLE)
    const missing = wanted.find((addr) => !local.some((route) => route.cidr.addr === addr))
    return missing === undefined ? undefined : `${formatAddr(missing)} is not local yet in ${veth.netns}`
  }
}

/** Of the device that has this name now; undefined: there is none. */
export function linkIndexOf(node: NetlinkExchange, name: string): number | undefined {
  return vethOf(node, name)?.index
}

function raiseInside(pod: NetlinkExchange, veth: PodVeth): void {
  const [loopback, own] = [vethOf(pod, 'lo'), vethOf(pod, veth.ifname)]
  if (own === undefined) throw new NetlinkError(`raise ${veth.ifname} in ${veth.netns}`, 'no such device', ENODEV)
  if (loopback !== undefined) setter(pod, loopback.index).up()
  if (veth.addresses.some((addr) => !isV4(addr))) enableIpv6(veth)
  const set = setter(pod, own.index)
  set.up()
  for (const addr of veth.addresses) set.address(addr)
  for (const family of familiesOf(veth)) {
    set.neighbour(POD_GATEWAYS[family], macOf(veth, 'node'))
    set.route(DEFAULTS[family], POD_GATEWAYS[family])
  }
}

/** The pod's end. */
function whatDiffersInside(pod: NetlinkExchange, veth: PodVeth): string | undefined {
  const own = vethOf(pod, veth.ifname)
  if (own === undefined) return `${veth.ifname} is gone from ${veth.netns}`
  if (!own.up) return `${veth.ifname} is down`
  if (own.mac !== macOf(veth, 'pod')) return `${veth.ifname} has the hardware address ${own.mac ?? ''}`
  const has = listAddresses(pod)
  const missing = veth.addresses.find((addr) => !has.some((one) => one.index === own.index && one.addr === addr))
  return missing === undefined ? undefined : `${veth.ifname} has lost ${formatAddr(missing)}`
}

/** Runtimes may have it off for the whole of the pod. A kernel without IPv6 says so when the address is set. */
function enableIpv6({ netns, ifname }: PodVeth): void {
  try {
    writeInNetns(netns, `/proc/sys/net/ipv6/conf/${ifname}/disable_ipv6`, '0')
  } catch (thrown) {
    if (!['ENOENT', 'EROFS'].includes(errorCode(thrown) ?? '')) throw thrown
  }
}

/** The device that has this name now. */
function vethOf(exchange: NetlinkExchange, name: string): LinkMessage | undefined {
  const found: (LinkMessage | undefined)[] = []
  const question = { what: `ask for ${name}`, type: RTM_GETLINK, payload: encodeLinkQuestion(name) }
  return unlessGone(() => {
    exchange.request(question, ({ type, payload }) => {
      if (type === RTM_NEWLINK) found.push(decodeLink(payload))
    })
    return found[0]
  })
}

/** Undefined when there is no such device. */
function unlessGone<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch (thrown) {
    if (thrown instanceof NetlinkError && thrown.errno === ENODEV) return undefined
    throw thrown
  }
}

/** What is set on one interface. */
function setter(exchange: NetlinkExchange, index: number) {
  const flags = NLM_F_CREATE | NLM_F_REPLACE
  return {
    up: (alias?: string) => {
      exchange.request({ what: `set link ${index} up`, type: RTM_NEWLINK, payload: encodeLinkUp(index, alias) })
    },
    address: (addr: Addr) => {
      exchange.request({ what: `add ${formatAddr(addr)}`, type: RTM_NEWADDR, flags, payload: encodeSingleAddr({ index, addr }) })
    },
    neighbour: (addr: Addr, mac: string) => {
      exchange.request({
        what: `add neighbour ${formatAddr(addr)}`,
        type: RTM_NEWNEIGH,
        flags,
        payload: encodeNeighbour({ index, addr, mac }),
      })
    },
    route: (cidr: { readonly addr: Addr; readonly bits: number }, via?: Addr) => {
      const route = { cidr, device: index, ...(via === undefined ? {} : { via }) }
      exchange.request({
        what: `add route ${formatAddr(cidr.addr)}/${cidr.bits}`,
        type: RTM_NEWROUTE,
        flags,
        payload: encodeDeviceRoute(route),
      })
    },
  }
}
