// SPDX-License-Identifier: Apache-2.0
/** Writes that a watch has not told of yet. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { Awaited } from '#operator/switch/awaited.ts'

function version(resourceVersion: string, uid = 'u'): ApiObject {
  return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'node.a', uid, resourceVersion } })
}

const named = namedOf(version('1'))

test('a write is waited for until the watch has it, or something later', () => {
  const awaited = new Awaited()
  expect(awaited.isOver(() => undefined, 0)).toBe(true)
  awaited.add([{ named, object: version('10') }], 0)
  expect(awaited.isOver(() => undefined, 0)).toBe(false)
  expect(awaited.isOver(() => version('9'), 0)).toBe(false)
  expect(awaited.isOver(() => version('10'), 0)).toBe(true)
  awaited.add([{ named, object: version('11') }], 0)
  expect(awaited.isOver(() => version('100'), 0)).toBe(true)
  awaited.add([{ named, object: version('11') }], 0)
  expect(awaited.isOver(() => version('3', 'another'), 0)).toBe(true)
})

test('a deleted object is waited for until it is gone; one that never comes not for ever', () => {
  const awaited = new Awaited()
  awaited.add([{ named, object: undefined }], 0)
  expect(awaited.isOver(() => version('1'), 0)).toBe(false)
  expect(awaited.isOver(() => undefined, 0)).toBe(true)
  awaited.add([{ named, object: version('1') }], 0)
  expect(awaited.isOver(() => undefined, 4999)).toBe(false)
  expect(awaited.isOver(() => undefined, 5000)).toBe(true)
})
