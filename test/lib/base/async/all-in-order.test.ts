// SPDX-License-Identifier: Apache-2.0
/** Of several that fail the first in order is told. Layer: test. */
import { expect, test } from 'vitest'
import { allInOrder } from '#lib/base/async/all-in-order.ts'

const soon = <T>(value: T): Promise<T> => new Promise((resolve) => setImmediate(resolve, value))

test('each value in its place', async () => {
  expect(await allInOrder([soon(1), 'a', Promise.resolve(2)])).toEqual([1, 'a', 2])
})

test('a failure that comes first in order, and not in time', async () => {
  const late = soon(undefined).then(() => Promise.reject(new Error('late')))
  await expect(allInOrder([soon(1), late, Promise.reject(new Error('early'))])).rejects.toThrow('late')
})
