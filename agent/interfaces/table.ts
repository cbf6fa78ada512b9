// SPDX-License-Identifier: Apache-2.0
/** The interfaces of this network namespace as netlink messages tell them. Layer: agent/interfaces (pure). */
import { formatCidr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { by, compareNumbers, compareText } from '#lib/base/order.ts'
import type { AddrMessage } from './netlink/addr.ts'
import type { LinkMessage, VxlanLink } from './netlink/link.ts'
import type { RouteMessage } from './netlink/route.ts'

export interface InterfaceAddress {
  readonly addr: Addr
  readonly bits: number
  /** 0 global, 253 link, 254 host */
  readonly scope: number
}

/** Replaced, never changed: a holder of one can compare by identity. */
export interface Interface {
  readonly index: number
  readonly name: string
  readonly mtu: number
  /** "02:00:00:00:00:01"; empty when the device has none */
  readonly mac: string
  readonly up: boolean
  readonly running: boolean
  readonly loopback: boolean
  readonly kind: string | undefined
  /** index of what it is enslaved to; 0: nothing */
  readonly master: number
  /** of a VXLAN device alone */
  readonly vxlan?: VxlanLink | undefined
  /** sorted by address */
  readonly addresses: readonly InterfaceAddress[]
}

/** What the dataplane needs to know. */
export interface Interfaces {
  /** sorted by index */
  all(): readonly Interface[]
  byName(name: string): Interface | undefined
  /** what the kernel takes for the node itself: the prefixes of its `local` routing table */
  local(): readonly Cidr[]
}

type LocalRoute = Pick<RouteMessage, 'cidr' | 'device' | 'priority'>

type Changed = (name: string) => void

/** `changed` hears the names of interfaces that came, went or are different in any field or in their local routes, the
 * old and the new name of a renamed one. */
export class InterfaceTable implements Interfaces {
  readonly #byIndex = new Map<number, Interface>()
  readonly #byName = new Map<string, Interface>()
  readonly #local = new Map<string, LocalRoute>()
  readonly #changed: Changed
  #seenLinks: Set<number> | undefined
  #seenAddresses: Set<string> | undefined
  #seenLocal: Set<string> | undefined

  constructor(changed: Changed) {
    this.#changed = changed
  }

  all(): readonly Interface[] {
    return [...this.#byIndex.values()].sort(by((one) => one.index, compareNumbers))
  }

  byName(name: string): Interface | undefined {
    return this.#byName.get(name)
  }

  local(): readonly Cidr[] {
    return [...this.#local.values()].map(({ cidr }) => cidr)
  }

  /** A link is there or different. What the message leaves out stays as it was. */
  link(message: LinkMessage): void {
    this.#seenLinks?.add(message.index)
    const before = this.#byIndex.get(message.index)
    const name = message.name ?? before?.name
    if (name === undefined) return
    this.#replace(before, {
      index: message.index,
      name,
      mtu: message.mtu ?? before?.mtu ?? 0,
      mac: message.mac ?? before?.mac ?? '',
      up: message.up,
      running: message.running,
      loopback: message.loopback,
      kind: message.kind ?? before?.kind,
      master: message.master,
      vxlan: message.vxlan ?? before?.vxlan,
      addresses: before?.addresses ?? [],
    })
  }

  linkGone(index: number): void {
    const before = this.#byIndex.get(index)
    if (before === undefined) return
    this.#byIndex.delete(index)
    if (this.#byName.get(before.name) === before) this.#byName.delete(before.name)
    this.#changed(before.name)
    // the kernel drops some of IPv4 without a word
    for (const [key, { device }] of this.#local) if (device === index) this.#local.delete(key)
  }

  /** An address is there; one the kernel does not answer on counts as gone. */
  address(message: AddrMessage): void {
    if (message.duplicate) {
      this.addressGone(message)
      return
    }
    this.#seenAddresses?.add(addressKey(message.index, message))
    const before = this.#byIndex.get(message.index)
    if (before === undefined) return
    const { addr, bits, scope } = message
    const others = before.addresses.filter((one) => !(one.addr === addr && one.bits === bits))
    this.#replace(before, { ...before, addresses: [...others, { addr, bits, scope }].sort(compareAddresses) })
  }

  addressGone(message: AddrMessage): void {
    const before = this.#byIndex.get(message.index)
    if (before === undefined) return
    this.#replace(before, {
      ...before,
      addresses: before.addresses.filter((one) => !(one.addr === message.addr && one.bits === message.bits)),
    })
  }

  /** A route of the `local` table is there. */
  localRoute(route: LocalRoute): void {
    const key = localKey(route)
    this.#seenLocal?.add(key)
    if (this.#local.has(key)) return
    this.#local.set(key, route)
    this.#changed(this.#byIndex.get(route.device)?.name ?? '')
  }

  localRouteGone(route: LocalRoute): void {
    if (this.#local.delete(localKey(route))) this.#changed(this.#byIndex.get(route.device)?.name ?? '')
  }

  /** From here on everything heard of is noted, until {@link endSync} takes away what was not. */
  beginSync(): void {
    this.#seenLinks = new Set()
    this.#seenAddresses = new Set()
    this.#seenLocal = new Set()
  }

  endSync(): void {
    const links = this.#seenLinks
    const addresses = this.#seenAddresses
    const local = this.#seenLocal
    this.#seenLinks = undefined
    this.#seenAddresses = undefined
    this.#seenLocal = undefined
    if (links === undefined || addresses === undefined || local === undefined) return
    for (const one of [...this.#byIndex.values()]) {
      if (!links.has(one.index)) this.linkGone(one.index)
      else this.#replace(one, { ...one, addresses: one.addresses.filter((address) => addresses.has(addressKey(one.index, address))) })
    }
    for (const [key, route] of [...this.#local]) if (!local.has(key)) this.localRouteGone(route)
  }

  #replace(before: Interface | undefined, after: Interface): void {
    if (before !== undefined && same(before, after)) return
    this.#byIndex.set(after.index, after)
    if (before !== undefined && before.name !== after.name) {
      if (this.#byName.get(before.name) === before) this.#byName.delete(before.name)
      this.#changed(before.name)
    }
    this.#byName.set(after.name, after)
    this.#changed(after.name)
  }
}

function addressKey(index: number, address: { addr: Addr; bits: number }): string {
  return `${index} ${address.bits} ${address.addr}`
}

function localKey({ cidr, device, priority }: LocalRoute): string {
  return `${device} ${priority} ${formatCidr(cidr)}`
}

function compareAddresses(a: InterfaceAddress, b: InterfaceAddress): number {
  return compareText(a.addr, b.addr) || compareNumbers(a.bits, b.bits)
}

function same(a: Interface, b: Interface): boolean {
  return (
    a.name === b.name &&
    a.mtu === b.mtu &&
    a.mac === b.mac &&
    a.up === b.up &&
    a.running === b.running &&
    a.loopback === b.loopback &&
    a.kind === b.kind &&
    a.master === b.master &&
    a.vxlan?.port === b.vxlan?.port &&
    a.vxlan?.external === b.vxlan?.external &&
    a.addresses.length === b.addresses.length &&
    a.addresses.every((one, at) => {
      const other = b.addresses[at]
      return other !== undefined && one.addr === other.addr && one.bits === other.bits && one.scope === other.scope
    })
  )
}
