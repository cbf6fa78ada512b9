// SPDX-License-Identifier: Apache-2.0
/** Fragments of `Desired` as rows of their maps. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { ANY_V4, ANY_V6, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import type { Row } from '#agent/compile/desired.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeText } from '#agent/maps/byte-rows.ts'
import { RowTables } from '#agent/dataplane/maps/row-tables.ts'
import { ROW_TABLES, rowWriters } from '#agent/dataplane/maps/encode-rows.ts'
import { MapTable } from '#agent/dataplane/maps/map-table.ts'
import { recordOf } from '#lib/base/object.ts'
import { addrInfo } from '../../../../testkit/packets/addr-info.ts'
import { bindDeclared, compileC } from '../../../support/compiled.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'

const { btf } = compileC('#include "maps/packets.h"\n')
const frontends = bindDeclared(catalogue.np_frontends, btf)
const backends = bindDeclared(catalogue.np_backends, btf)
const addrs = bindDeclared(catalogue.np_addrs, btf)

const LIST = '00000000000000aa'

function frontend(list = LIST): Row {
  return {
    table: 'frontends',
    key: { addr: parseAddr('10.96.0.1'), port: parsePort(80), proto: 'TCP' },
    value: { inside: { list, count: 1 }, outside: { list, count: 2 }, flags: 3, affinity: 9 },
  }
}

function podRow(ip: string, iface: string | undefined): Row {
  return { table: 'addrs', key: { addr: parseAddr(ip) }, value: { kind: 1, flags: 4, iface } }
}

const interfaces = new Map<string, number>()
const none: Readonly<Record<(typeof ROW_TABLES)[number], FakeMap>> = recordOf(ROW_TABLES, fakeMap)
let maps = none
let rows: RowTables<MapTable>

/** As large as the codecs say. */
function fakeMap(table: (typeof ROW_TABLES)[number]): FakeMap {
  const { key, value } = bindDeclared<unknown, unknown>(catalogue[`np_${table}`], btf)
  return new FakeMap({ name: `np_${table}`, keySize: key.size, valueSize: value.size, maxEntries: 100 })
}

beforeEach(async () => {
  interfaces.clear()
  maps = recordOf(ROW_TABLES, fakeMap)
  const tables = recordOf(ROW_TABLES, (name) => new MapTable(maps[name]))
  const writers = rowWriters((definition) => bindDeclared(definition, btf))
  rows = new RowTables({ tables, writers, resolve: (name) => interfaces.get(name) })
  for (const table of Object.values(tables)) await table.readBack()
})

function apply(): void {
  for (const table of Object.values(rows.tables)) {
    table.applyUpdates()
    table.applyDeletes()
  }
}

function addrRows(): unknown[] {
  return [...maps.addrs.contents()].map(([key, value]) => [decodeText(addrs.key, key), decodeText(addrs.value, value)])
}

describe('RowTables', () => {
  test('a service goes to two tables', () => {
    const backend: Row = {
      table: 'backends',
      key: { list: LIST, slot: 0 },
      value: { addr: parseAddr('10.1.0.5'), node: ANY_V4, port: parsePort(8080), flags: 0 },
    }
    rows.setFragment({ owner: 'Service/default/web', rows: [frontend(), backend] })
    apply()
    const [[key, value] = ['', '']] = maps.frontends.contents()
    expect(decodeText(frontends.key, key)).toEqual({ addr: parseAddr('10.96.0.1'), port: 80, proto: 6 })
    expect(decodeText(frontends.value, value)).toEqual({
      inside: { list: LIST, count: 1 },
      outside: { list: LIST, count: 2 },
      flags: 3,
      affinity: 9,
    })
    const [stored = ''] = maps.backends.contents().values()
    expect(decodeText(backends.value, stored), 'no node is all zero for C').toEqual({
      addr: parseAddr('10.1.0.5'),
      node: ANY_V6,
      port: 8080,
      flags: 0,
    })
  })

  test('a fragment replaces all of its owner, in all tables', () => {
    rows.setFragment({ owner: 'o', rows: [frontend(), podRow('10.1.0.1', undefined)] })
    rows.setFragment({ owner: 'o', rows: [podRow('10.1.0.2', undefined)] })
    apply()
    expect(maps.frontends.contents().size).toBe(0)
    expect(addrRows()).toEqual([[parseAddr('10.1.0.2'), addrInfo(1, { flags: 4, ifindex: 0 })]])
  })

  test('a row waits for its interface, follows its index, and goes with it', () => {
    rows.setFragment({ owner: 'Pod/default/a', rows: [podRow('10.1.0.1', 'npl1'), podRow('10.1.0.9', undefined)] })
    apply()
    expect(addrRows()).toEqual([[parseAddr('10.1.0.9'), addrInfo(1, { flags: 4, ifindex: 0 })]])
    for (const ifindex of [7, 8]) {
      interfaces.set('npl1', ifindex)
      expect(rows.interfaceChanged('npl1')).toBe(true)
      apply()
      expect(addrRows()).toContainEqual([parseAddr('10.1.0.1'), addrInfo(1, { flags: 4, ifindex })])
    }
    interfaces.delete('npl1')
    rows.interfaceChanged('npl1')
    apply()
    expect(addrRows()).toEqual([[parseAddr('10.1.0.9'), addrInfo(1, { flags: 4, ifindex: 0 })]])
    expect(rows.interfaceChanged('other')).toBe(false)
  })

  test('a pod of ours is known before its interface is there, and after: no other row has its address', () => {
    const own: Row = { table: 'addrs', key: { addr: parseAddr('10.1.0.1') }, value: { kind: 1, flags: 2, iface: 'npl1' } }
    rows.setFragment({ owner: 'Pod/default/a', rows: [own] })
    const indexes: unknown[] = []
    for (const index of [undefined, 5, undefined]) {
      if (index === undefined) interfaces.delete('npl1')
      else interfaces.set('npl1', index)
      rows.interfaceChanged('npl1')
      apply()
      indexes.push(...addrRows())
    }
    expect(indexes).toEqual([0, 5, 0].map((ifindex) => [parseAddr('10.1.0.1'), addrInfo(1, { flags: 2, ifindex })]))
  })

  test('owners that are gone no longer wait', () => {
    rows.setFragment({ owner: 'Pod/default/a', rows: [podRow('10.1.0.1', 'npl1')] })
    rows.complete(new Set())
    interfaces.set('npl1', 7)
    expect(rows.interfaceChanged('npl1')).toBe(false)
  })

  test('prefixes count the bits before an IPv4 address', () => {
    const cidr = (text: string) => ({ cidr: parseCidr(text) })
    const node = parseAddr('192.168.0.2')
    rows.setFragment({
      owner: 'o',
      rows: [
        { table: 'ranges', key: { set: '0123456789abcdef', ...cidr('10.1.0.0/16') }, value: undefined },
        { table: 'ranges', key: { set: '0000000000000001', ...cidr('fd00::/8') }, value: undefined },
        { table: 'routes', key: cidr('10.2.0.0/24'), value: { node } },
      ],
    })
    apply()
    const keys = bindDeclared(catalogue.np_ranges, btf).key
    expect([...maps.ranges.contents().keys()].map((key) => decodeText(keys, key))).toEqual([
      { prefix: 64 + 96 + 16, set: '0123456789abcdef', addr: parseAddr('10.1.0.0') },
      { prefix: 64 + 8, set: '0000000000000001', addr: parseAddr('fd00::') },
    ])
    const [[key, value] = ['', '']] = maps.routes.contents()
    const codecs = bindDeclared(catalogue.np_routes, btf)
    expect([decodeText(codecs.key, key), decodeText(codecs.value, value)]).toEqual([
      { prefix: 96 + 24, addr: parseAddr('10.2.0.0') },
      { node },
    ])
  })

  test('a value that no struct can hold changes nothing', () => {
    rows.setFragment({ owner: 'o', rows: [frontend()] })
    expect(() => {
      rows.setFragment({ owner: 'o', rows: [podRow('10.1.0.1', undefined), frontend('not an id')] })
    }).toThrow('frontend.inside.list')
    apply()
    expect([maps.frontends.contents().size, maps.addrs.contents().size]).toEqual([1, 0])
  })
})
