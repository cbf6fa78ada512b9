// SPDX-License-Identifier: Apache-2.0
/** Frontends in the order in which people look for them, and what they call a list of backends. Layer: cli (pure). */
import { formatAddr, hostPort, isAny, protocolText } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Frontend, FrontendKey } from '#agent/maps/shapes.ts'
import { entriesOf, type Entry, type Tables } from '../map-tables.ts'

/** By address, IPv4 first; then port and protocol. */
export async function sortedFrontends(tables: Tables): Promise<Entry<FrontendKey, Frontend>[]> {
  const frontends = await entriesOf(tables.open(catalogue.np_frontends))
  return frontends.sort(([a], [b]) => compareText(a.addr, b.addr) || a.port - b.port || a.proto - b.proto)
}

/** "10.96.0.10:80/TCP"; node ports have no address of their own: "0.0.0.0:30080/TCP" */
export function frontendText({ addr, port, proto }: FrontendKey): string {
  return `${hostPort(formatAddr(addr), port)}/${protocolText(proto)}`
}

/** List → frontends that choose from it, those with an address first. Ids of lists are hashes and say nothing. */
export async function listNames(tables: Tables): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = new Map<string, string[]>()
  const frontends = await sortedFrontends(tables)
  for (const [key, { inside, outside }] of frontends.sort(([a], [b]) => Number(isAny(a.addr)) - Number(isAny(b.addr)))) {
    for (const list of new Set([inside.list, outside.list])) names.set(list, [...(names.get(list) ?? []), frontendText(key)])
  }
  return names
}

/** "10.96.0.10:80/TCP +2"; the id for a list that no frontend chooses from */
export function namesText(list: string, names: readonly string[]): string {
  const [first, ...more] = names
  return first === undefined ? list : more.length === 0 ? first : `${first} +${more.length}`
}
