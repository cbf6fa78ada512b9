// SPDX-License-Identifier: Apache-2.0
/** Interfaces as the monitor would give them. Layer: test. */
import { addrBits, parseAddr } from '#lib/base/ip.ts'
import type { Interface, Interfaces } from '#agent/interfaces/table.ts'

export interface InterfaceText {
  readonly index: number
  readonly name: string
  readonly addresses?: readonly string[]
  /** of all addresses; 0 when not given */
  readonly scope?: number
  readonly up?: boolean
  readonly loopback?: boolean
}

export function anInterface(text: InterfaceText): Interface {
  const { index, name, scope = 0, up = true, loopback = false } = text
  const addresses = (text.addresses ?? []).map(parseAddr).map((addr) => ({ addr, bits: addrBits(addr), scope }))
  return {
    index,
    name,
    mtu: 1500,
    mac: `02:00:00:00:00:${index.toString(16).padStart(2, '0')}`,
    up,
    running: up,
    loopback,
    kind: undefined,
    master: 0,
    addresses,
  }
}

export function interfaces(...all: readonly Interface[]): Interfaces {
  return { all: () => all, byName: (name) => all.find((one) => one.name === name) }
}
