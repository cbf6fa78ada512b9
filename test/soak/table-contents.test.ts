// SPDX-License-Identifier: Apache-2.0
/** Tables that differ. */
import { expect, test } from 'vitest'
import { differences, type TableContents } from '../../soak/table-contents.ts'

const contents = (addrs: Readonly<Record<string, string>>): TableContents => new Map([['addrs', new Map(Object.entries(addrs))]])
const text = () => (key: string, value: string) => `${key}=${value}`

test('equal tables do not differ', () => {
  expect(differences(contents({ a: '1', b: '2' }), contents({ b: '2', a: '1' }), text)).toEqual([])
})

test('tables differ by rows that are missing, other, or too many', () => {
  expect(differences(contents({ a: '1', b: '2' }), contents({ b: '3', c: '4' }), text)).toEqual([
    'np_addrs lacks a=1',
    'np_addrs has b=3, not b=2',
    'np_addrs has c=4 too many',
  ])
})

test('a table that is not there at all lacks all its rows', () => {
  expect(differences(contents({ a: '1' }), new Map(), text)).toEqual(['np_addrs lacks a=1'])
})
