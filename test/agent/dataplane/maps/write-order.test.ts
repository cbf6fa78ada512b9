// SPDX-License-Identifier: Apache-2.0
/** A full table of backends: a row that refers to a list waits until the list is whole. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { FRONTEND_RANGES } from '#lib/base/bpf-constants.ts'
import { ANY_V4, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { Row } from '#agent/compile/desired.ts'
import { writeGateFor } from '#agent/dataplane/maps/write-order.ts'
import { Reconciler } from '#agent/dataplane/reconcile/reconciler.ts'
import { RowTables } from '#agent/dataplane/maps/row-tables.ts'
import { ROW_TABLES, rowWriters, type BindMap } from '#agent/dataplane/maps/encode-rows.ts'
import { REMOVED_AFTER, removalsOf, writesOf } from '#agent/dataplane/map-reconcilers.ts'
import { MapTable } from '#agent/dataplane/maps/map-table.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeText } from '#agent/maps/byte-rows.ts'
import { bindDeclared, compileC } from '../../../support/compiled.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'

const { btf } = compileC('#include "maps/packets.h"\n')
const bind: BindMap = (definition) => bindDeclared(definition, btf)
const values = bind(catalogue.np_frontends).value
const ROOM = 4

let maps: Readonly<Record<(typeof ROW_TABLES)[number], FakeMap>>
let rows: RowTables
let phases: Reconciler

beforeEach(async () => {
  maps = recordOf(ROW_TABLES, (name) => {
    const { key, value } = bindDeclared<unknown, unknown>(catalogue[`np_${name}`], btf)
    return new FakeMap({
      name: `np_${name}`,
      keySize: key.size,
      valueSize: value.size,
      maxEntries: name === 'backends' || name === 'ranges' ? ROOM : 100,
    })
  })
  const tables = recordOf(ROW_TABLES, (name) => new MapTable(maps[name]))
  rows = new RowTables({ tables, writers: rowWriters(bind), resolve: () => undefined })
  const holds = writeGateFor(bind, tables)
  const now = (name: (typeof ROW_TABLES)[number]) => () => ({ table: tables[name], holds })
  phases = new Reconciler({
    phases: [
      ...ROW_TABLES.map((name) => ({ part: writesOf(name, now(name)) })),
      ...ROW_TABLES.toReversed().map((name) => ({ part: removalsOf(name, now(name)), needs: REMOVED_AFTER[name] ?? [] })),
    ],
    log: silentLog,
    health: new Health(() => 0),
  })
  for (const table of Object.values(tables)) await table.readBack()
})

/** A service of so many backends, at 10.96.0.<number>; its list is known by the same number, or by this one. */
function set(number: number, count: number, id = number): void {
  const list = id.toString(16).padStart(16, '0')
  const choice = { list, count }
  const addr = parseAddr(`10.96.0.${number}`)
  const backends = Array.from({ length: count }, (_, slot): Row => ({
    table: 'backends',
    key: { list, slot },
    value: { addr: parseAddr(`10.0.${number}.${slot}`), node: ANY_V4, port: parsePort(80), flags: 0 },
  }))
  const frontend: Row = {
    table: 'frontends',
    key: { addr, port: parsePort(80), proto: 'TCP' },
    value: { inside: choice, outside: choice, flags: 0, affinity: 0 },
  }
  rows.setFragment({ owner: `Service/default/s${number}`, rows: count === 0 ? [] : [frontend, ...backends] })
}

/** What the frontends in the map count, and how many backends there are. */
function counts(): string {
  const frontends = [...maps.frontends.contents().values()].map((value) => decodeText(values, value).inside)
  return [
    ...frontends.map(({ list, count }) => `${Number.parseInt(list, 16)}:${count}`).sort(),
    `backends ${maps.backends.contents().size}`,
  ].join(' ')
}

test('a list that grows beyond the table keeps its last count, others go on', () => {
  set(1, 2)
  phases.run()
  set(1, 5)
  set(2, 1)
  const report = phases.run()
  expect(counts()).toMatch(/^1:2 (2:1 )?backends 4$/)
  expect(report.retryMs, 'no busy waiting').toBeGreaterThan(0)
  set(1, 3)
  phases.run()
  phases.run()
  expect(counts()).toBe('1:3 2:1 backends 4')
  expect(phases.run().retryMs).toBeUndefined()
})

test('room that a removed service leaves is used', () => {
  set(1, 3)
  phases.run()
  set(1, 0)
  set(2, 4)
  phases.run()
  expect(counts(), 'not before its backends are in').toBe('backends 1')
  phases.run()
  expect(counts()).toBe('2:4 backends 4')
})

test('a list that gets another id keeps the rows of the old one for as long as its frontend counts on them', () => {
  set(1, 3)
  phases.run()
  set(1, 3, 9)
  phases.run()
  phases.run()
  expect(counts(), 'no room for both').toBe('1:3 backends 4')
  set(1, 1, 9)
  phases.run()
  expect(counts()).toBe('9:1 backends 1')
  expect(phases.run().retryMs).toBeUndefined()
})

describe('source ranges of a list that gets another id:', () => {
  const list = (id: number): string => id.toString(16).padStart(16, '0')
  const restricted = (id: number, ...cidrs: readonly string[]): void => {
    const choice = { list: list(id), count: 0 }
    const key = { addr: parseAddr('10.96.0.1'), port: parsePort(80), proto: 'TCP' } as const
    const ranges = cidrs.map((cidr): Row => ({ table: 'ranges', key: { set: list(id), cidr: parseCidr(cidr) }, value: undefined }))
    const value = { inside: choice, outside: choice, flags: FRONTEND_RANGES, affinity: 0 }
    rows.setFragment({ owner: 'Service/default/s1', rows: [{ table: 'frontends', key, value }, ...ranges] })
  }

  test('the frontend has those of one id or those of the other', () => {
    restricted(1, '10.0.0.0/8', '11.0.0.0/8', '12.0.0.0/8')
    phases.run()
    restricted(9, '10.0.0.0/8', '11.0.0.0/8', '12.0.0.0/8')
    phases.run()
    phases.run()
    expect(counts(), 'no room for both').toBe('1:0 backends 0')
    expect(maps.ranges.contents().size).toBe(4)
    restricted(9, '10.0.0.0/8')
    phases.run()
    expect(counts()).toBe('9:0 backends 0')
    expect(maps.ranges.contents().size).toBe(1)
  })

  test('a range that is taken away goes, also while others find no room', () => {
    restricted(1, '10.0.0.0/8', '11.0.0.0/8')
    phases.run()
    restricted(1, '11.0.0.0/8', '12.0.0.0/8', '13.0.0.0/8', '14.0.0.0/8')
    phases.run()
    phases.run()
    expect(maps.ranges.contents().size).toBe(4)
    expect(phases.run().retryMs).toBeUndefined()
  })
})

test('a list that cannot be rewritten keeps the rows that its frontend still counts', () => {
  set(1, 3)
  phases.run()
  const [first = ''] = maps.backends.contents().keys()
  set(1, 2)
  rows.setFragment({ owner: 'Service/default/s1', rows: moved() })
  maps.backends.broken.add(first)
  phases.run()
  expect(counts()).toBe('1:3 backends 3')
  maps.backends.broken.clear()
  phases.run()
  expect(counts()).toBe('1:2 backends 2')
})

/** The first service with two backends elsewhere. */
function moved(): Row[] {
  const list = '0000000000000001'
  const choice = { list, count: 2 }
  const backend = (slot: number): Row => ({
    table: 'backends',
    key: { list, slot },
    value: { addr: parseAddr(`10.9.0.${slot}`), node: ANY_V4, port: parsePort(80), flags: 0 },
  })
  return [
    {
      table: 'frontends',
      key: { addr: parseAddr('10.96.0.1'), port: parsePort(80), proto: 'TCP' },
      value: { inside: choice, outside: choice, flags: 0, affinity: 0 },
    },
    backend(0),
    backend(1),
  ]
}
