// SPDX-License-Identifier: Apache-2.0
/** `bpf routes`: what the programs know of addresses and prefixes. Layer: cli (pure). */
import { addrBits, formatAddr, type Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Question, Report } from '../report.ts'
import { entriesOf, type Tables } from '../map-tables.ts'
import { orDash, prefixText } from '../text.ts'
import { flagNames, kindName } from '../enum-names.ts'
import { listNames, namesText } from './services.ts'

export interface RouteRecord {
  /** "local-pod", "self", "node", "service" of addresses; "overlay"; "inside", "tunnel-back" and "source" of ranges */
  readonly kind: string
  readonly prefix: string
  readonly interface: string | null
  /** whose pods these are */
  readonly node: string | null
  readonly flags: readonly string[]
  /** of source ranges: the frontends that are open to them alone */
  readonly frontends: readonly string[]
}

export const routes: Report<RouteRecord> = {
  heading: ['KIND', 'PREFIX', 'AT', 'FLAGS'],
  async *records(question) {
    const { tables } = question
    yield [...(await addresses(question)), ...(await overlay(tables)), ...(await ranges(tables))]
  },
  lines: ({ kind, prefix, interface: name, node, flags, frontends }) => [
    [kind, prefix, orDash(name ?? node ?? (frontends.length === 0 ? '' : namesText('', frontends))), flags.join(' ')],
  ],
}

const NOWHERE = { interface: null, node: null, flags: [], frontends: [] }

async function addresses({ tables, interfaceName }: Question): Promise<RouteRecord[]> {
  const table = tables.open(catalogue.np_addrs)
  const [kindOf, flagsOf] = [kindName(table.btf, 'addr_kind'), flagNames(table.btf, 'addr_flag')]
  const entries = await entriesOf(table)
  return entries
    .sort(([a, { kind }], [b, { kind: other }]) => kind - other || compareText(a, b))
    .map(([addr, { kind, flags, ifindex }]) => ({
      ...NOWHERE,
      kind: kindOf(kind),
      prefix: `${formatAddr(addr)}/${addrBits(addr)}`,
      interface: ifindex === 0 ? null : interfaceName(ifindex),
      flags: flagsOf(flags),
    }))
}

async function overlay(tables: Tables): Promise<RouteRecord[]> {
  const entries = await entriesOf(tables.open(catalogue.np_routes))
  return entries
    .sort(([a], [b]) => comparePrefixes(a, b))
    .map(([{ addr, prefix }, { node }]) => ({ ...NOWHERE, kind: 'overlay', prefix: prefixText(addr, prefix), node: formatAddr(node) }))
}

/** Bits of the set, which come before those of the address. */
export const SET_BITS = 64

async function ranges(tables: Tables): Promise<RouteRecord[]> {
  const table = tables.open(catalogue.np_ranges)
  const names = await listNames(tables)
  const wordOf = kindName(table.btf, 'range_set')
  const entries = await entriesOf(table)
  return entries
    .map(([key]) => key)
    .sort((a, b) => compareText(a.set, b.set) || comparePrefixes(a, b))
    .map(({ addr, prefix, set }) => ({ ...NOWHERE, ...setOf(set, { wordOf, names }), prefix: prefixText(addr, prefix - SET_BITS) }))
}

/** Few sets have a name; the others are lists, whose ids are hashes. */
function setOf(
  set: string,
  known: { readonly wordOf: (set: number) => string; readonly names: ReadonlyMap<string, readonly string[]> },
): Pick<RouteRecord, 'kind' | 'frontends'> {
  const frontends = known.names.get(set)
  if (frontends !== undefined) return { kind: 'source', frontends }
  const number = Number.parseInt(set, 16)
  const word = known.wordOf(number)
  return word === String(number) ? { kind: 'source', frontends: [set] } : { kind: word, frontends: [] }
}

function comparePrefixes(a: { readonly addr: Addr; readonly prefix: number }, b: { readonly addr: Addr; readonly prefix: number }): number {
  return compareText(a.addr, b.addr) || a.prefix - b.prefix
}
