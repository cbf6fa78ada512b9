// SPDX-License-Identifier: Apache-2.0
/** Finds the veths of pods that another plugin attached: the kernel knows both ends. Layer: agent/cni. */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, NetlinkError } from '#lib/base/errors.ts'
import { addrBits, type Addr } from '#lib/base/ip.ts'
import { by, compareNumbers } from '#lib/base/order.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { LinkMessage } from '#agent/interfaces/netlink/link.ts'
import { listAddresses, listLinks, listRoutes } from '#agent/interfaces/netlink/lists.ts'
import { decodeNsid, encodeNsidQuestion, RTM_GETNSID, RTM_NEWNSID } from '#agent/interfaces/netlink/nsid.ts'
import { CniError } from '../cni-error.ts'
import { filesIn } from '../files.ts'
import { inNetns } from './netns.ts'

const VETH = 'veth'

/** Name of the node's end of this veth. Throws CniError when it is none that could have programs. */
export function nodeEndOf(node: NetlinkExchange, { netns, ifname }: { readonly netns: string; readonly ifname: string }): string {
  const id = nsidOf(node, netns)
  const own = inNetns(netns, listLinks).find(({ name }) => name === ifname)
  if (own === undefined) throw new CniError('config', `there is no ${ifname} in ${netns}`)
  if (own.kind !== VETH) throw new CniError('config', `${ifname} is ${own.kind ?? 'hardware'}: programs can be at veths alone`)
  const end = listLinks(node).find((link) => link.index === peerOf(own) && leadsTo(link, { id, index: own.index }))
  if (end?.name === undefined) throw new CniError('config', `the other end of ${ifname} is not on this node`)
  return end.name
}

/** By address: names of the node's ends of the veths that lead to it. There may be several: of a sandbox that is left
 * over, of another network. The one to believe comes first: where the node's own route leads, then the youngest.
 * Covers all veths that have their other end in a network namespace of this folder, whether they have ever sent a
 * packet or not; for runtimes that keep namespaces elsewhere, all that have a route of their own. */
export function pluggedAddresses(node: NetlinkExchange, folder: string): ReadonlyMap<Addr, readonly string[]> {
  const youngestFirst = listLinks(node)
    .filter(({ kind }) => kind === VETH)
    .sort(by(({ index }) => -index, compareNumbers))
  const behind = filesIn(folder).flatMap((file) => addressesBehind(node, join(folder, file), youngestFirst))
  const ages = new Map(youngestFirst.map(({ name }, at) => [name, at]))
  const found = [...routedAddresses(node, youngestFirst), ...behind.sort(by(([, name]) => ages.get(name) ?? 0, compareNumbers))]
  const veths = new Map<Addr, string[]>()
  for (const [addr, name] of found) {
    const known = veths.get(addr) ?? []
    if (!known.includes(name)) veths.set(addr, [...known, name])
  }
  return veths
}

function addressesBehind(node: NetlinkExchange, netns: string, veths: readonly LinkMessage[]): readonly (readonly [Addr, string])[] {
  try {
    const id = nsidOf(node, netns)
    if (id === undefined || !veths.some((link) => link.peerNetns === id)) return []
    return inNetns(netns, listAddresses).flatMap((one) => {
      const name = veths.find((link) => leadsTo(link, { id, index: one.index }))?.name
      return name === undefined ? [] : [[one.addr, name] as const]
    })
  } catch (thrown) {
    // gone since, or a file that is no namespace, or not yet
    if (thrown instanceof NetlinkError || ['ENOENT', 'EINVAL'].includes(errorCode(thrown) ?? '')) return []
    throw thrown
  }
}

/** By any table: providers have some for each of their interfaces. */
function routedAddresses(node: NetlinkExchange, veths: readonly LinkMessage[]): readonly (readonly [Addr, string])[] {
  const names = new Map(veths.map(({ index, name }) => [index, name]))
  return listRoutes(node).flatMap((route) => {
    const name = names.get(route.device)
    if (name === undefined || route.via !== undefined) return []
    return route.cidr.bits === addrBits(route.cidr.addr) ? [[route.cidr.addr, name] as const] : []
  })
}

function leadsTo(link: LinkMessage, other: { readonly id: number | undefined; readonly index: number }): boolean {
  return link.kind === VETH && other.id !== undefined && link.peerNetns === other.id && peerOf(link) === other.index
}

/** Kernels leave it out where it is the same number as its own. */
function peerOf({ peer, index }: LinkMessage): number {
  return peer === 0 ? index : peer
}

/** Undefined: it is the node's own, or no device of the node leads there. */
function nsidOf(node: NetlinkExchange, netns: string): number | undefined {
  const fd = openSync(netns, 'r')
  try {
    let id: number | undefined
    node.request({ what: `ask for ${netns}`, type: RTM_GETNSID, payload: encodeNsidQuestion(fd) }, ({ type, payload }) => {
      if (type === RTM_NEWNSID) id = decodeNsid(payload)
    })
    return id
  } finally {
    closeSync(fd)
  }
}
