// SPDX-License-Identifier: Apache-2.0
/** Fragments of `Desired` as rows of three maps. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { ANY_V4, ANY_V6, parseAddr, parsePort } from '#lib/base/ip.ts'
import type { Row } from '#agent/compile/desired.ts'
import { bind, bindKey } from '#agent/maps/codec.ts'
import { addr } from '#agent/maps/kinds.ts'
import { structLayout } from '#agent/maps/layout.ts'
import * as shapes from '#agent/maps/shapes.ts'
import { decodeText } from '#agent/maps/text.ts'
import { RowTables } from '#agent/dataplane/row-tables.ts'
import { Table } from '#agent/dataplane/table.ts'
import { compileC } from '../../support/compiled.ts'
import { FakeMap } from '../../support/fake-map.ts'

const { btf } = compileC('#include <linux/bpf.h>\n#include "maps.h"\n')
const codecs = {
  frontends: {
    key: bindKey(shapes.frontendKey, structLayout(btf, 'frontend_key')),
    value: bind(shapes.frontend, structLayout(btf, 'frontend')),
  },
  backends: {
    key: bindKey(shapes.backendKey, structLayout(btf, 'backend_key')),
    value: bind(shapes.backend, structLayout(btf, 'backend')),
  },
  addrs: { key: bindKey(addr, structLayout(btf, 'addr')), value: bind(shapes.addrInfo, structLayout(btf, 'addr_info')) },
}

const SERVICE = '00000000000000aa'

function frontend(service = SERVICE): Row {
  return {
    table: 'frontends',
    key: { addr: parseAddr('10.96.0.1'), port: parsePort(80), proto: 'TCP' },
    value: { service, count: 1, flags: 0 },
  }
}

function podRow(ip: string, iface: string | undefined): Row {
  return { table: 'addrs', key: { addr: parseAddr(ip) }, value: { kind: 1, iface } }
}

const interfaces = new Map<string, number>()
let maps: Record<'frontends' | 'backends' | 'addrs', FakeMap>
let rows: RowTables

beforeEach(async () => {
  interfaces.clear()
  maps = {
    frontends: new FakeMap({ name: 'np_frontends', keySize: 20, valueSize: 16, maxEntries: 100 }),
    backends: new FakeMap({ name: 'np_backends', keySize: 16, valueSize: 40, maxEntries: 100 }),
    addrs: new FakeMap({ name: 'np_addrs', keySize: 16, valueSize: 8, maxEntries: 100 }),
  }
  const tables = { frontends: new Table(maps.frontends), backends: new Table(maps.backends), addrs: new Table(maps.addrs) }
  rows = new RowTables({ tables, codecs, resolve: (name) => interfaces.get(name) })
  for (const table of Object.values(tables)) await table.readBack()
})

function apply(): void {
  for (const table of Object.values(rows.tables)) {
    table.applyUpdates()
    table.applyDeletes()
  }
}

function addrRows(): unknown[] {
  return [...maps.addrs.contents()].map(([key, value]) => [decodeText(codecs.addrs.key, key), decodeText(codecs.addrs.value, value)])
}

describe('RowTables', () => {
  test('a service goes to two tables', () => {
    const backend: Row = {
      table: 'backends',
      key: { service: SERVICE, slot: 0 },
      value: { addr: parseAddr('10.1.0.5'), node: ANY_V4, port: parsePort(8080), flags: 0 },
    }
    rows.setFragment({ owner: 'Service/default/web', rows: [frontend(), backend] })
    apply()
    const [[key, value] = ['', '']] = maps.frontends.contents()
    expect(decodeText(codecs.frontends.key, key)).toEqual({ addr: parseAddr('10.96.0.1'), port: 80, proto: 6 })
    expect(decodeText(codecs.frontends.value, value)).toEqual({ service: SERVICE, count: 1, flags: 0 })
    const [stored = ''] = maps.backends.contents().values()
    expect(decodeText(codecs.backends.value, stored), 'no node is all zero for C').toEqual({
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
    expect(addrRows()).toEqual([[parseAddr('10.1.0.2'), { kind: 1, ifindex: 0 }]])
  })

  test('a row waits for its interface, follows its index, and goes with it', () => {
    rows.setFragment({ owner: 'Pod/default/a', rows: [podRow('10.1.0.1', 'npl1'), podRow('10.1.0.9', undefined)] })
    expect([...rows.waitingFor()]).toEqual(['npl1'])
    apply()
    expect(addrRows()).toEqual([[parseAddr('10.1.0.9'), { kind: 1, ifindex: 0 }]])
    for (const ifindex of [7, 8]) {
      interfaces.set('npl1', ifindex)
      expect(rows.interfaceChanged('npl1')).toBe(true)
      apply()
      expect(addrRows()).toContainEqual([parseAddr('10.1.0.1'), { kind: 1, ifindex }])
    }
    expect([...rows.waitingFor()]).toEqual([])
    interfaces.delete('npl1')
    rows.interfaceChanged('npl1')
    apply()
    expect(addrRows()).toEqual([[parseAddr('10.1.0.9'), { kind: 1, ifindex: 0 }]])
    expect(rows.interfaceChanged('other')).toBe(false)
  })

  test('owners that are gone no longer wait', () => {
    rows.setFragment({ owner: 'Pod/default/a', rows: [podRow('10.1.0.1', 'npl1')] })
    rows.complete(new Set())
    interfaces.set('npl1', 7)
    expect([rows.interfaceChanged('npl1'), rows.waitingFor().size]).toEqual([false, 0])
  })

  test('a contest is told with the key decoded', () => {
    rows.setFragment({ owner: 'Service/b/web', rows: [frontend('00000000000000bb')] })
    rows.setFragment({ owner: 'Service/a/web', rows: [frontend()] })
    expect(rows.contests()).toEqual([
      { table: 'frontends', key: { addr: parseAddr('10.96.0.1'), port: 80, proto: 6 }, winner: 'Service/a/web', losers: ['Service/b/web'] },
    ])
  })

  test('a value that no struct can hold changes nothing', () => {
    rows.setFragment({ owner: 'o', rows: [frontend()] })
    expect(() => {
      rows.setFragment({ owner: 'o', rows: [podRow('10.1.0.1', undefined), frontend('not an id')] })
    }).toThrow('frontend.service')
    apply()
    expect([maps.frontends.contents().size, maps.addrs.contents().size]).toEqual([1, 0])
  })
})
