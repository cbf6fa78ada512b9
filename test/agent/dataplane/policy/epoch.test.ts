// SPDX-License-Identifier: Apache-2.0
/** When flows are judged again. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { Epoch } from '#agent/dataplane/policy/epoch.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { bindDeclared, builtObject } from '../../../support/compiled.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'

const { btf } = builtObject('tc')
const codecs = bindDeclared(catalogue.np_state, btf)
const KEY = new Uint8Array(4)

let map: FakeMap
let now: number
let epoch: Epoch

beforeEach(() => {
  map = new FakeMap({ name: 'np_state', keySize: 4, valueSize: codecs.value.size, maxEntries: 1 })
  map.update(KEY, encodeBytes(codecs.value, { takeover_until: 77, epoch: 41, own_prefixes: 2, accounts: 1, tunnel_device: 7 }))
  now = 10_000
  epoch = new Epoch({ map, btf, now: () => now })
})

const state = () => decodeBytes(codecs.value, map.lookup(KEY) ?? new Uint8Array())

test('the first mark takes effect at once, and a takeover goes on', () => {
  expect([epoch.pending(), epoch.dueMs]).toEqual([false, undefined])
  epoch.mark()
  expect([epoch.pending(), epoch.apply().done, state()]).toEqual([
    true,
    1,
    { takeover_until: 77, epoch: 42, own_prefixes: 2, accounts: 1, tunnel_device: 7 },
  ])
  expect([epoch.pending(), epoch.apply().done]).toEqual([false, 0])
})

test('many marks are one, and the last is never lost', () => {
  epoch.mark()
  epoch.apply()
  for (let mark = 0; mark < 10; mark++) epoch.mark()
  now += 100
  expect([epoch.pending(), epoch.dueMs]).toEqual([false, 150])
  now += 150
  expect([epoch.pending(), epoch.apply().done, state().epoch, epoch.dueMs]).toEqual([true, 1, 43, undefined])
})

test('what the kernel refuses is tried again', () => {
  epoch.mark()
  map.broken.add('\0\0\0\0')
  expect(epoch.apply().failures).toHaveLength(1)
  map.broken.clear()
  expect([epoch.pending(), epoch.apply().done, state().epoch]).toEqual([true, 1, 42])
})

test('another number of own prefixes is written, and flows are judged again; the same number is none', () => {
  epoch.setOwnPrefixes(2)
  expect(epoch.pending()).toBe(false)
  epoch.setOwnPrefixes(3)
  expect([epoch.pending(), epoch.apply().done, state()]).toEqual([
    true,
    1,
    { takeover_until: 77, epoch: 42, own_prefixes: 3, accounts: 1, tunnel_device: 7 },
  ])
})

test('the number comes round', () => {
  map.update(KEY, encodeBytes(codecs.value, { takeover_until: 0, epoch: 0xffffffff, own_prefixes: 0, accounts: 0, tunnel_device: 0 }))
  epoch.mark()
  epoch.apply()
  expect(state().epoch).toBe(0)
})
