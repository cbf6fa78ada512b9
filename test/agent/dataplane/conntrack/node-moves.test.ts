// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { NodeMoves } from '#agent/dataplane/conntrack/node-moves.ts'
import type { FlowTable } from '#agent/dataplane/conntrack/gc.ts'
import { FlowReader } from '#agent/dataplane/conntrack/reader.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'
import { FLOW_BYTES, flowEntry, flowTypes, TIMEOUTS } from '../../../support/flow-entries.ts'

const ONE = parseAddr('192.0.2.1')
const TWO = parseAddr('192.0.2.2')
const THREE = parseAddr('fd00::3')

function setup(vias: readonly string[]) {
  const map = new FakeMap({ name: 'np_ct', keySize: FLOW_BYTES.key, valueSize: FLOW_BYTES.value, maxEntries: 5000 })
  const reader = new FlowReader(flowTypes, TIMEOUTS)
  const entries = vias.map((via, number) => {
    const { key, value } = flowEntry({ number, seen: 1 })
    reader.via(value).write(via, 'latin1')
    map.update(key, value)
    return { key, value }
  })
  const table: FlowTable = { map, reader, destinationOf: () => undefined, clientOf: () => undefined, maxEntries: 5000, fullAt: () => 0 }
  const found: { table: FlowTable | undefined } = { table }
  const moves = new NodeMoves({ clock: new FakeClock(), log: silentLog, table: () => found.table })
  const now = (): string[] => entries.map(({ key }) => reader.via(map.lookup(key) ?? Buffer.alloc(0)).toString('latin1'))
  return { map, moves, found, now, entries, reader }
}

test('entries of a node that has moved have its new address, and nothing else is other than it was', async () => {
  const { map, moves, now, entries, reader } = setup([ONE, TWO, ONE])
  moves.note([[ONE, THREE]])
  await moves.tick()
  expect(now()).toEqual([THREE, TWO, THREE])
  for (const { key, value } of entries) {
    const after = Buffer.from(map.lookup(key) ?? '')
    for (const bytes of [after, value]) reader.via(bytes).fill(0)
    expect(after).toEqual(value)
  }
})

test('nodes may move one after the other, to where another was', async () => {
  const { moves, now } = setup([ONE, TWO])
  moves.note([[TWO, THREE]])
  moves.note([[ONE, TWO]])
  await moves.tick()
  expect(now()).toEqual([TWO, THREE])
})

test('nodes may change places', async () => {
  const { moves, now } = setup([ONE, TWO])
  moves.note([
    [ONE, TWO],
    [TWO, ONE],
  ])
  await moves.tick()
  expect(now()).toEqual([TWO, ONE])
})

test('entries of a node that moves twice have its last address', async () => {
  const { moves, now } = setup([ONE])
  moves.note([[ONE, TWO]])
  moves.note([[TWO, THREE]])
  await moves.tick()
  expect(now()).toEqual([THREE])
})

test('moves wait while the table is being replaced', async () => {
  const { moves, found, now } = setup([ONE])
  const { table } = found
  found.table = undefined
  moves.note([[ONE, TWO]])
  await moves.tick()
  expect(now()).toEqual([ONE])
  found.table = table
  await moves.tick()
  expect(now()).toEqual([TWO])
})

test('an entry that programs have given another node since it was read is left alone', async () => {
  const { map, moves, now, reader } = setup([ONE])
  const lookup = map.lookup.bind(map)
  map.lookup = (key) => {
    map.lookup = lookup
    const value = map.lookup(key)
    if (value === undefined) return undefined
    reader.via(value).write(TWO, 'latin1')
    map.update(key, value)
    return value
  }
  moves.note([[ONE, THREE]])
  await moves.tick()
  expect(now()).toEqual([TWO])
})
