// SPDX-License-Identifier: Apache-2.0
/** What is in the tables of a node, and what a fresh compile says should be. Layer: soak. */
import { join } from 'node:path'
import { BpfMap, btfById } from '#native'
import type { DesiredChange, RowOf, Table } from '#agent/compile/desired.ts'
import { tableMap } from '#agent/dataplane/maps/array-map.ts'
import type { Claim } from '#agent/dataplane/maps/key-owners.ts'
import { chosenDevices, decideDevices } from '#agent/dataplane/host/devices.ts'
import { TABLES, type TableName } from '#agent/dataplane/generation-tables.ts'
import { rowWriters, type BindMap, type ResolveInterface, type RowWriters } from '#agent/dataplane/maps/encode-rows.ts'
import { addressClaims, ifaceRows, selfFragment } from '#agent/dataplane/host/node-rows.ts'
import { NO_ROUTES } from '#agent/dataplane/host/route-lookup.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { parseBtf } from '#agent/maps/btf.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition } from '#agent/maps/catalogue.ts'
import { decodeText, entryWriter, type Entry } from '#agent/maps/byte-rows.ts'
import { addrFromText, formatAddr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { policyContents } from './policy-contents.ts'

/** Of each table its rows, encoded: key → value. */
export type TableContents = ReadonlyMap<TableName, ReadonlyMap<string, string>>

/** How a row is shown. */
export type RowText = (key: string, value: string) => string

/** The maps that are pinned in this folder. Throws the addon's errors. */
export async function readContents(pinDir: string): Promise<TableContents> {
  const tables = new Map<TableName, ReadonlyMap<string, string>>()
  for (const name of TABLES) {
    const map = openMap(pinDir, `np_${name}`)
    try {
      const { keys, values, count } = await tableMap(map).dump()
      const at = (bytes: Buffer, size: number, row: number): string => bytes.toString('latin1', row * size, (row + 1) * size)
      tables.set(
        name,
        new Map(Array.from({ length: count }, (_, row) => [at(keys, map.keyBytes, row), at(values, map.valueBytes, row)] as const)),
      )
    } finally {
      map.close()
    }
  }
  return tables
}

/** Of everything that is wanted. Of two owners that want one key the first has it. */
export function wantedContents(desired: DesiredChange, interfaces: Interfaces, pinDir: string): TableContents {
  const bind: BindMap = (definition) => bound(pinDir, definition)
  const tables = new Map<TableName, Map<string, string>>(TABLES.map((name) => [name, new Map<string, string>()]))
  const put = (name: TableName, [key, value]: Entry): void => {
    const table = tables.get(name)
    if (table?.has(key) === false) table.set(key, value)
  }
  const { node } = desired
  // a lab's nodes have one network, and their address is in it
  const devices = node === undefined ? [] : chosenDevices(decideDevices(node, interfaces, { ways: NO_ROUTES, veths: new Set() }))
  const entry = entryWriter(bind(catalogue.np_ifaces))
  for (const row of ifaceRows(devices)) put('ifaces', entry(row))
  const writers = rowWriters(bind)
  const resolve: ResolveInterface = (name) => interfaces.byName(name)?.index
  const fragments = [...desired.fragments, selfFragment(interfaces, node?.nodePortAddresses ?? [])]
  const claims: (Claim & { readonly key: string })[] = []
  for (const { owner, rows } of fragments.toSorted((a, b) => compareText(a.owner, b.owner)))
    for (const row of rows)
      write({ row, writers, resolve }, (name, entry) => {
        if (name === 'addrs') claims.push({ owner, key: entry[0], value: entry[1] })
        else put(name, entry)
      })
  for (const { key, value } of claims.sort(addressClaims(bind(catalogue.np_addrs).value))) put('addrs', [key, value])
  const places = tables.get('addrs') ?? new Map<string, string>()
  tables.set('addrs', new Map(policyContents({ steps: desired.policy, devices, bind, put, places })))
  return tables
}

/** "np_addrs lacks …", "np_backends has … too many": a line for each row that is not as wanted. */
export function differences(wanted: TableContents, actual: TableContents, textOf: (table: TableName) => RowText): string[] {
  return TABLES.flatMap((name) => {
    const [want, have] = [wanted.get(name) ?? new Map<string, string>(), actual.get(name) ?? new Map<string, string>()]
    const text = textOf(name)
    const wrong = [...want].flatMap(([key, value]) => {
      const found = have.get(key)
      if (found === value) return []
      return found === undefined
        ? [`np_${name} lacks ${text(key, value)}`]
        : [`np_${name} has ${text(key, found)}, not ${text(key, value)}`]
    })
    const extra = [...have].flatMap(([key, value]) => (want.has(key) ? [] : [`np_${name} has ${text(key, value)} too many`]))
    return [...wrong, ...extra]
  })
}

interface Writing<T extends Table> {
  readonly row: RowOf<T>
  readonly writers: RowWriters
  readonly resolve: ResolveInterface
}

function write<T extends Table>({ row, writers, resolve }: Writing<T>, put: (name: Table, entry: Entry) => void): void {
  const entry = writers[row.table](row, resolve)
  if (entry !== undefined) put(row.table, entry)
}

/** Long values, as Maglev's, are cut. */
const LONGEST = 160
const ADDRESS_BYTES = 16

/** For people. */
export function rowText(pinDir: string, name: TableName): RowText {
  const definition: MapDefinition<unknown, unknown> = catalogue[`np_${name}`]
  const { key: keys, value: values } = bound(pinDir, definition)
  return (key, value) => `${json(decodeText(keys, key))} → ${json(decodeText(values, value)).slice(0, LONGEST)}`
}

/** Addresses are text of 16 bytes, which people cannot read. */
function json(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === 'bigint') return inner.toString(16)
    const isAddress = typeof inner === 'string' && inner.length === ADDRESS_BYTES && !/^[0-9a-f]+$/.test(inner)
    return isAddress ? formatAddr(addrFromText(inner)) : inner
  })
}

/** The codecs of a pinned map, by the types that it carries. */
function bound<K, V>(pinDir: string, definition: MapDefinition<K, V>): MapCodecs<K, V> {
  const map = openMap(pinDir, definition.name)
  try {
    const info = map.info()
    return bindMap(definition, parseBtf(btfById(info.btfId)), info)
  } finally {
    map.close()
  }
}

function openMap(pinDir: string, name: string): BpfMap {
  return BpfMap.openPin(join(pinDir, 'maps', name))
}
