// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { MapFill } from '#agent/dataplane/map-fill.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { FakeMap } from '../../support/fake-map.ts'

test('counts what programs put into their maps, and keeps the last count of one that goes', async () => {
  const map = new FakeMap({ name: 'np_frags', keySize: 4, valueSize: 4, maxEntries: 10_000 })
  const fill = new MapFill({ clock: new FakeClock(), maps: () => new Map([['np_frags', map]]) })
  for (let key = 0; key < 5000; key++) map.update(new Uint8Array(new Uint32Array([key]).buffer), Buffer.alloc(4))
  await fill.count()
  expect([...fill.entries]).toEqual([['np_frags', 5000]])
  map.close()
  await fill.count()
  expect([...fill.entries]).toEqual([['np_frags', 5000]])
})
