// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { addr, arrayOf, id64, shape, u16List, u32 } from '#agent/maps/field-kinds.ts'
import { plain } from '../../../cli/node/rows.ts'

test('addresses are text wherever they are, lists of numbers short, all else as it is', () => {
  const { kind } = shape('x', { addr, list: arrayOf(addr, 2), id: id64, slot: u16List(5), count: u32 })
  const value = {
    addr: parseAddr('10.0.0.1'),
    list: [parseAddr('fd00::1'), parseAddr('10.0.0.2')],
    id: '0123456789abcdef',
    slot: Uint16Array.of(7, 7, 7, 1, 2),
    count: 3,
  }
  expect(plain(kind, value)).toEqual({
    addr: '10.0.0.1',
    list: ['fd00::1', '10.0.0.2'],
    id: '0123456789abcdef',
    slot: '7x3 1 2',
    count: 3,
  })
})
