// SPDX-License-Identifier: Apache-2.0
/** Tables that differ. */
import { expect, test } from 'vitest'
import { differences, type TableContents } from '../../soak/table-contents.ts'

const contents = (addrs: Readonly<Record<string, string>>): TableContents => new Map([['addrs', new Map(Object.entries(addrs))]])
const text = () => (key: string, value: string) => `${key}=${value}`

test('equal ones do not', () => {
  expect(differences(contents({ a: '1', b: '2' }), contents({ b: '2', a: '1' }), text)).toEqual([])
})

test('what is missing, other, too many', () => {
  expect(differences(contents({ a: '1', b: '2' }), contents({ b: '3', c: '4' }), text)).toEqual([
    'np_addrs lacks a=1',
    'np_addrs has b=3, not b=2',
    'np_addrs has c=4 too many',
  ])
})

test('a table that is not there at all', () => {
  expect(differences(contents({ a: '1' }), new Map(), text)).toEqual(['np_addrs lacks a=1'])
})
