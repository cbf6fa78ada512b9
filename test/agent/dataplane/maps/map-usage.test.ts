// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { silentLog, type LogFields } from '#lib/obs/log.ts'
import { MapUsage } from '#agent/dataplane/maps/map-usage.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeMap, FakeNativeError } from '../../../support/fakes/fake-map.ts'

test('the agent counts what programs put into their maps, and keeps the last count of one that goes', async () => {
  const map = new FakeMap({ name: 'np_frags', keySize: 4, valueSize: 4, maxEntries: 10_000 })
  const fill = new MapUsage({ clock: new FakeClock(), log: silentLog, maps: () => new Map([['np_frags', map]]) })
  for (let key = 0; key < 5000; key++) map.update(new Uint8Array(new Uint32Array([key]).buffer), Buffer.alloc(4))
  await fill.count()
  expect([...fill.entries]).toEqual([['np_frags', 5000]])
  map.close()
  await fill.count()
  expect([...fill.entries]).toEqual([['np_frags', 5000]])
})

test('a map that cannot be read is logged, and the others are counted all the same', async () => {
  class Unreadable extends FakeMap {
    override readChunk(): Promise<never> {
      return Promise.reject(new FakeNativeError('ENOMEM', 'bpf_map_lookup_batch'))
    }
  }
  const spec = { keySize: 4, valueSize: 4, maxEntries: 10 }
  const maps = [new Unreadable({ name: 'np_sockets', ...spec }), new FakeMap({ name: 'np_frags', ...spec })]
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (fields: LogFields, event: string) => warnings.push([fields['map'], event]) }
  const fill = new MapUsage({ clock: new FakeClock(), log, maps: () => new Map(maps.map((map) => [map.info().name, map])) })
  await fill.count()
  expect([[...fill.entries], warnings]).toEqual([[['np_frags', 0]], [['np_sockets', 'map.count-failed']]])
})
