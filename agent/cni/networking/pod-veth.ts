// SPDX-License-Identifier: Apache-2.0
/** A pod's veth: both of its ends, and what is set on them. Layer: agent/cni. */
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { writeInNetns } from '#native'
import { errorCode, NetlinkError } from '#lib/base/errors.ts'
import { addrBits, ANY_V4, ANY_V6, formatAddr, isV4, type Addr } from '#lib/base/ip.ts'
import { sha1 } from '#lib/base/hash.ts'
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
import { inNetns } from './netns.ts'

export interface PodVeth {
  /** the sandbox that it is made for: written on the node's end */
  readonly containerId: string
  /** name of the node's end */
  readonly host: string
  /** file of the pod's network namespace */
  readonly netns: string
  /** name of the pod's end */
  readonly ifname: string
  readonly mtu: number
  readonly addresses: readonly Addr[]
}

const { ENODEV } = constants.errno
const DEFAULTS = { v4: { addr: ANY_V4, bits: 0 }, v6: { addr: ANY_V6, bits: 0 } } as const

/** Both ends, not up: nothing can be sent before the programs are there. */
export function createVeth(node: NetlinkExchange, link: PodVeth): void {
  const { host, ifname, mtu } = link
  const netnsFd = openSync(link.netns, 'r')
  try {
    const peer = { name: ifname, mac: macOf(link, 'pod'), mtu, netnsFd }
    const payload = encodeVeth({ name: host, mac: macOf(link, 'node'), mtu }, peer)
    node.request({ what: `add ${host}, and ${ifname} in ${link.netns}`, type: RTM_NEWLINK, flags: NLM_F_CREATE | NLM_F_EXCL, payload })
  } finally {
    closeSync(netnsFd)
  }
}

/** As {@link removeVeth}, unless it says that it is another sandbox's: one that took this one's place has the name
 * by now. */
export function removeOwnVeth(node: NetlinkExchange, { host, containerId }: Pick<PodVeth, 'host' | 'containerId'>): void {
  if ((vethOf(node, host)?.alias ?? containerId) === containerId) removeVeth(node, host)
}

/** Whosever it is. The pod's end goes along. Nothing happens when it is not there. */
export function removeVeth(node: NetlinkExchange, host: string): void {
  unlessGone(() => {
    node.request({ what: `remove ${host}`, type: RTM_DELLINK, payload: encodeLinkRemoval(host) })
  })
}

/** Both ends go up, with addresses and routes. May be done again. */
export function raiseVeth(node: NetlinkExchange, link: PodVeth): void {
  const host = vethOf(node, link.host)
  if (host === undefined) throw new NetlinkError(`raise ${link.host}`, 'no such device', ENODEV)
  const set = setter(node, host.index)
  set.up(link.containerId)
  for (const addr of link.addresses) {
    // asked for, they would answer: but by IPv6 a device cannot ask before it is sure of its own address, for up to two
    // seconds
    set.neighbour(addr, macOf(link, 'pod'))
    set.route({ addr, bits: addrBits(addr) })
  }
  inNetns(link.netns, (pod) => {
    raiseInside(pod, link)
  })
}

function raiseInside(pod: NetlinkExchange, link: PodVeth): void {
  const [loopback, own] = [vethOf(pod, 'lo'), vethOf(pod, link.ifname)]
  if (own === undefined) throw new NetlinkError(`raise ${link.ifname} in ${link.netns}`, 'no such device', ENODEV)
  if (loopback !== undefined) setter(pod, loopback.index).up()
  if (link.addresses.some((addr) => !isV4(addr))) enableIpv6(link)
  const set = setter(pod, own.index)
  set.up()
  for (const addr of link.addresses) set.address(addr)
  for (const family of familiesOf(link)) {
    set.neighbour(POD_GATEWAYS[family], macOf(link, 'node'))
    set.route(DEFAULTS[family], POD_GATEWAYS[family])
  }
}

/** What the kernel does after it has said yes, and without which packets to the pod are lost; undefined: nothing.
 * The end that goes up first takes packets a while after the other one is up; and an address of IPv6 is the pod's
 * when its local route is there, with or without a search for duplicates. */
export function missingOfVeth(node: NetlinkExchange, link: PodVeth): string | undefined {
  if (vethOf(node, link.host)?.running !== true) return `${link.host} has no carrier`
  const wanted = link.addresses.filter((addr) => !isV4(addr))
  if (wanted.length === 0) return undefined
  const local = inNetns(link.netns, (pod) => listRoutes(pod, [AF_INET6])).filter(({ table }) => table === LOCAL_TABLE)
  const missing = wanted.find((addr) => !local.some(({ cidr }) => cidr.addr === addr))
  return missing === undefined ? undefined : `${formatAddr(missing)} is not local yet in ${link.netns}`
}

/** What differs from how it was made; undefined: nothing. */
export function whatDiffers(node: NetlinkExchange, link: PodVeth): string | undefined {
  const host = vethOf(node, link.host)
  if (host === undefined) return `${link.host} is gone`
  if (!host.up) return `${link.host} is down`
  if (host.alias !== undefined && host.alias !== link.containerId) return `${link.host} is that of the sandbox ${host.alias}`
  if (host.mac !== macOf(link, 'node')) return `${link.host} has the hardware address ${host.mac ?? ''}`
  return inNetns(link.netns, (pod) => {
    const own = vethOf(pod, link.ifname)
    if (own === undefined) return `${link.ifname} is gone from ${link.netns}`
    if (!own.up) return `${link.ifname} is down`
    if (own.mac !== macOf(link, 'pod')) return `${link.ifname} has the hardware address ${own.mac ?? ''}`
    const has = listAddresses(pod)
    const missing = link.addresses.find((addr) => !has.some((one) => one.index === own.index && one.addr === addr))
    return missing === undefined ? undefined : `${link.ifname} has lost ${formatAddr(missing)}`
  })
}

/** True when the veth must be made again. */
export function hasChanged(node: NetlinkExchange, link: PodVeth): boolean {
  try {
    return whatDiffers(node, link) !== undefined
  } catch {
    // its namespace is not the one of then
    return true
  }
}

/** The same in every run, and another one at each end. */
export function macOf({ host }: Pick<PodVeth, 'host'>, end: 'node' | 'pod'): string {
  const digits = sha1(`${host} ${end}`)
  // unicast, given by hand
  return ['02', ...[0, 2, 4, 6, 8].map((at) => digits.slice(at, at + 2))].join(':')
}

export function familiesOf({ addresses }: Pick<PodVeth, 'addresses'>): readonly ('v4' | 'v6')[] {
  return [...(addresses.some(isV4) ? ['v4' as const] : []), ...(addresses.some((addr) => !isV4(addr)) ? ['v6' as const] : [])]
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
export function vethOf(exchange: NetlinkExchange, name: string): LinkMessage | undefined {
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
