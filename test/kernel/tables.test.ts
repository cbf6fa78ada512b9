// SPDX-License-Identifier: Apache-2.0
/** Rows of `Desired` in the kernel's own maps: written, adopted, repaired, and too many. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANY_V4, addrFromBytes, parsePort } from '#lib/base/ip.ts'
import type { Fragment, Row, Table as TableName } from '#agent/compile/desired.ts'
import { openObject } from '#agent/dataplane/objects.ts'
import type { OpenObject } from '#agent/dataplane/objects.ts'
import type { SharedMaps } from '#agent/dataplane/pinned.ts'
import { ensureMaps } from '#agent/dataplane/pinned.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { RowTables } from '#agent/dataplane/row-tables.ts'
import { Table } from '#agent/dataplane/table.ts'
import type { MapCodecs, MapDefinition, MapName } from '#agent/maps/catalogue.ts'
import { bindMap, catalogue } from '#agent/maps/catalogue.ts'
import { encodeBytes } from '#agent/maps/text.ts'
import { objectPath } from '../support/objects.ts'

const SERVICES = 1000
const BACKENDS = 10

let opened: OpenObject
let shared: SharedMaps
const cleanups: (() => void)[] = []

beforeEach(async () => {
  const parent = mkdtempSync('/sys/fs/bpf/np-test-')
  cleanups.push(() => rmSync(parent, { recursive: true }))
  opened = openObject({ name: 'workload', path: objectPath('workload') })
  cleanups.push(() => opened.object.close())
  const sizes = { conntrack: 1000, frontends: SERVICES, backends: SERVICES * BACKENDS, addrs: 10 }
  shared = await ensureMaps({ pins: new Pins(join(parent, 'netplane')), objects: [opened], sizes })
  cleanups.push(() => shared[Symbol.dispose]())
})

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function codecsOf<K, V>(name: MapName, definition: MapDefinition<K, V>): MapCodecs<K, V> {
  const spec = opened.shared.get(name)
  if (spec === undefined) throw new Error(`no map ${name}`)
  return bindMap(definition, opened.btf, spec)
}

/** As a starting agent makes them. */
function rowTables(): RowTables {
  const table = (name: MapName): Table => {
    const map = shared.maps.get(name)
    if (map === undefined) throw new Error(`no map ${name}`)
    return new Table(map)
  }
  return new RowTables({
    tables: { frontends: table('np_frontends'), backends: table('np_backends'), addrs: table('np_addrs') },
    codecs: {
      frontends: codecsOf('np_frontends', catalogue.np_frontends),
      backends: codecsOf('np_backends', catalogue.np_backends),
      addrs: codecsOf('np_addrs', catalogue.np_addrs),
    },
    resolve: () => undefined,
  })
}

function serviceFragment(number: number): Fragment {
  const service = number.toString(16).padStart(16, '0')
  const host = (last: number) => addrFromBytes(new Uint8Array([10, number >> 8, number & 255, last]))
  const rows: Row[] = [
    { table: 'frontends', key: { addr: host(0), port: parsePort(80), proto: 'TCP' }, value: { service, count: BACKENDS, flags: 0 } },
  ]
  for (let slot = 0; slot < BACKENDS; slot++) {
    rows.push({ table: 'backends', key: { service, slot }, value: { addr: host(slot + 1), node: ANY_V4, port: parsePort(8080), flags: 0 } })
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
  const codecs = codecsOf('np_backends', catalogue.np_backends)
  map?.delete(encodeBytes(codecs.key, { service: '0000000000000007', slot: 3 }))
  map?.update(encodeBytes(codecs.key, { service: '0000000000000008', slot: 3 }), Buffer.alloc(40))
  expect(await second.tables.backends.readBack()).toEqual({ missing: 1, changed: 1, foreign: 0 })
  expect(second.tables.backends.applyUpdates()).toEqual({ done: 2, errors: [] })
  expect(await second.tables.backends.readBack()).toEqual({ missing: 0, changed: 0, foreign: 0 })
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
