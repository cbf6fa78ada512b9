// SPDX-License-Identifier: Apache-2.0
/** Interfaces as the monitor would give them. Layer: test. */
import { addrBits, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Interface, Interfaces } from '#agent/interfaces/table.ts'

export interface InterfaceText {
  readonly index: number
  readonly name: string
  /** with a length, or alone */
  readonly addresses?: readonly string[]
  readonly kind?: string
  readonly master?: number
  /** made from the index when not given */
  readonly mac?: string
  /** of all addresses; 0 when not given */
  readonly scope?: number
  readonly up?: boolean
  readonly loopback?: boolean
}

export function anInterface(text: InterfaceText): Interface {
  const { index, name, scope = 0, up = true, loopback = false, kind, master = 0 } = text
  const addresses = (text.addresses ?? []).map((one) => {
    const [host = '', bits] = one.split('/')
    const addr = parseAddr(host)
    return { addr, bits: bits === undefined ? addrBits(addr) : Number(bits), scope }
  })
  return {
    index,
    name,
    mtu: 1500,
    mac: text.mac ?? `02:00:00:00:00:${index.toString(16).padStart(2, '0')}`,
    up,
    running: up,
    loopback,
    kind,
    master,
    addresses,
  }
}

export function interfaces(...all: readonly Interface[]): Interfaces {
  return withLocal([], ...all)
}

/** `local`: prefixes that the kernel takes for the node itself. */
export function withLocal(local: readonly string[], ...all: readonly Interface[]): Interfaces {
  return { all: () => all, byName: (name) => all.find((one) => one.name === name), local: () => local.map(parseCidr) }
}
