// SPDX-License-Identifier: Apache-2.0
/** Rows of `Desired` in the kernel's own maps: written, adopted, repaired, and too many. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MAGLEV_SIZE } from '#lib/base/bpf-constants.ts'
import { ANY_V4, addrFromBytes, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import type { Fragment, Row, Table as TableName } from '#agent/compile/desired.ts'
import { openObject } from '#agent/dataplane/programs/objects.ts'
import type { OpenObject } from '#agent/dataplane/programs/objects.ts'
import type { SharedMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { ensureMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { RowTables } from '#agent/dataplane/maps/row-tables.ts'
import { ROW_TABLES, rowWriters } from '#agent/dataplane/maps/encode-rows.ts'
import { tableMap } from '#agent/dataplane/maps/array-map.ts'
import { MapTable } from '#agent/dataplane/maps/map-table.ts'
import type { MapCodecs, MapDefinition } from '#agent/maps/catalogue.ts'
import { bindMap, catalogue } from '#agent/maps/catalogue.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { objectPath } from '../../../testkit/packets/objects.ts'
import { TIMEOUTS } from '../../support/flow-entries.ts'

const SERVICES = 1000
const BACKENDS = 10

let opened: OpenObject
let shared: SharedMaps
const cleanups: (() => void)[] = []

beforeEach(async () => {
  const parent = mkdtempSync('/sys/fs/bpf/np-test-')
  cleanups.push(() => rmSync(parent, { recursive: true }))
  opened = openObject({ name: 'tc', path: objectPath('tc') })
  cleanups.push(() => opened.object.close())
  const sizes = { conntrack: 1000, frontends: SERVICES, backends: SERVICES * BACKENDS, affinity: 10, addrs: 10, live: SERVICES * BACKENDS }
  shared = await ensureMaps({ pins: new Pins(join(parent, 'netplane')), objects: [opened], sizes, timeouts: TIMEOUTS })
  cleanups.push(() => shared[Symbol.dispose]())
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function codecsOf<K, V>(definition: MapDefinition<K, V>): MapCodecs<K, V> {
  const spec = [...opened.shared.values()].find(({ name }) => name === definition.name)
  if (spec === undefined) throw new Error(`no map ${definition.name}`)
  return bindMap(definition, opened.btf, spec)
}

/** As a starting agent makes them. */
function rowTables(): RowTables<MapTable> {
  const table = (name: TableName): MapTable => {
    const map = shared.maps.get(`np_${name}`)
    if (map === undefined) throw new Error(`no map for ${name}`)
    return new MapTable(tableMap(map))
  }
  return new RowTables({ tables: recordOf(ROW_TABLES, table), writers: rowWriters(codecsOf), resolve: () => undefined })
}

function serviceFragment(number: number): Fragment {
  const list = number.toString(16).padStart(16, '0')
  const choice = { list, count: BACKENDS }
  const host = (last: number) => addrFromBytes(new Uint8Array([10, number >> 8, number & 255, last]))
  const rows: Row[] = [
    {
      table: 'frontends',
      key: { addr: host(0), port: parsePort(80), proto: 'TCP' },
      value: { inside: choice, outside: choice, flags: 0, affinity: 0 },
    },
  ]
  for (let slot = 0; slot < BACKENDS; slot++) {
    rows.push({ table: 'backends', key: { list, slot }, value: { addr: host(slot + 1), node: ANY_V4, port: parsePort(8080), flags: 0 } })
  }
  return { owner: `Service/default/s${number}`, rows }
}

const NAMES: readonly TableName[] = ['frontends', 'backends', 'addrs']

test('all rows are written once, adopted after a restart, and repaired when a stranger touches them', async () => {
  const first = rowTables()
  for (let number = 0; number < SERVICES; number++) first.setFragment(serviceFragment(number))
  for (const name of NAMES) await first.tables[name].readBack()
  expect(NAMES.map((name) => first.tables[name].applyUpdates())).toEqual(
    [SERVICES, SERVICES * BACKENDS, 0].map((done) => ({ done, errors: [] })),
  )

  const second = rowTables()
  for (let number = 0; number < SERVICES; number++) second.setFragment(serviceFragment(number))
  for (const name of NAMES) await second.tables[name].readBack()
  expect(NAMES.map((name) => second.tables[name].pending)).toEqual(NAMES.map(() => ({ updates: 0, deletes: 0 })))

  const map = shared.maps.get('np_backends')
  const codecs = codecsOf(catalogue.np_backends)
  map?.delete(encodeBytes(codecs.key, { list: '0000000000000007', slot: 3 }))
  map?.update(encodeBytes(codecs.key, { list: '0000000000000008', slot: 3 }), Buffer.alloc(40))
  expect(await second.tables.backends.readBack()).toEqual({ missing: 1, changed: 1, foreign: 0 })
  expect(second.tables.backends.applyUpdates()).toEqual({ done: 2, errors: [] })
  expect(await second.tables.backends.readBack()).toEqual({ missing: 0, changed: 0, foreign: 0 })
})

test('every table takes its rows, knows them again, and lets go of them', async () => {
  const list = '00000000000000aa'
  const cidr = parseCidr('10.1.0.0/16')
  const node = parseAddr('192.0.2.1')
  const { rows } = serviceFragment(1)
  const more: Row[] = [
    { table: 'live', key: { list, addr: node, port: parsePort(80) }, value: { flags: 1, slot: 3 } },
    { table: 'maglev', key: { list }, value: { slots: new Uint16Array(MAGLEV_SIZE).fill(0x102) } },
    { table: 'spared', key: { slot: 1024 + 299 }, value: undefined },
    { table: 'failsafes', key: { direction: 1, protocol: 6, port: parsePort(6443), cidr }, value: undefined },
    { table: 'ranges', key: { set: list, cidr }, value: undefined },
    { table: 'ranges', key: { set: list, cidr: parseCidr('10.1.1.0/24') }, value: undefined },
    { table: 'routes', key: { cidr: parseCidr('fd00::/8') }, value: { node } },
    { table: 'vteps', key: { addr: node }, value: { mac: '66:00:5e:00:53:01' } },
    { table: 'addrs', key: { addr: node }, value: { kind: 2, flags: 1, iface: undefined } },
  ]
  const wanted = { owner: 'Service/default/web', rows: [...rows, ...more] }
  const first = rowTables()
  first.setFragment(wanted)
  for (const name of ROW_TABLES) await first.tables[name].readBack()
  expect(ROW_TABLES.map((name) => [name, first.tables[name].applyUpdates()])).toEqual(
    Object.entries({
      addrs: 1,
      spared: 1,
      failsafes: 1,
      ranges: 2,
      routes: 1,
      vteps: 1,
      backends: BACKENDS,
      live: 1,
      maglev: 1,
      frontends: 1,
    }).map(([name, done]) => [name, { done, errors: [] }]),
  )
  const second = rowTables()
  second.setFragment(wanted)
  for (const name of ROW_TABLES) await second.tables[name].readBack()
  expect(ROW_TABLES.map((name) => second.tables[name].pending)).toEqual(ROW_TABLES.map(() => ({ updates: 0, deletes: 0 })))
  second.setFragment({ owner: wanted.owner, rows: [] })
  for (const name of ROW_TABLES) expect(second.tables[name].applyDeletes().errors).toEqual([])
  const third = rowTables()
  for (const name of ROW_TABLES) expect([name, await third.tables[name].readBack()]).toEqual([name, { missing: 0, changed: 0, foreign: 0 }])
})

test('more rows than the map takes: an error that says so, and room is used as soon as there is some', async () => {
  const rows = rowTables()
  const { frontends } = rows.tables
  for (let number = 0; number < SERVICES + 5; number++) rows.setFragment(serviceFragment(number))
  await frontends.readBack()
  const applied = frontends.applyUpdates()
  expect(applied.errors.map((error) => error.message)).toEqual([
    `map np_frontends: update: full: ${SERVICES + 5 - applied.done} rows wait for room among ${SERVICES}`,
  ])
  for (let number = 0; number < 10; number++) rows.setFragment({ owner: `Service/default/s${number}`, rows: [] })
  frontends.applyUpdates()
  frontends.applyDeletes()
  expect([frontends.applyUpdates().errors, frontends.pending]).toEqual([[], { updates: 0, deletes: 0 }])
})
