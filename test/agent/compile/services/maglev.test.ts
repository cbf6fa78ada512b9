// SPDX-License-Identifier: Apache-2.0
/** Maglev's table: fair, stable, the same everywhere. Layer: test. */
import { expect, test } from 'vitest'
import { MAGLEV_SIZE } from '#lib/base/bpf-constants.ts'
import { parseAddr, parsePort } from '#lib/base/ip.ts'
import { maglevSlots } from '#agent/compile/services/maglev.ts'
import type { MaglevBackend } from '#agent/compile/services/maglev.ts'

function backends(count: number): MaglevBackend[] {
  return Array.from({ length: count }, (_, at) => ({ addr: parseAddr(`10.1.${at >> 8}.${at & 255}`), port: parsePort(8080) }))
}

/** The backend of each slot, whatever its index in the list. */
function holders(list: readonly MaglevBackend[]): string[] {
  return Array.from(maglevSlots(list), (index) => `${list[index]?.addr ?? ''}${list[index]?.port ?? ''}`)
}

test.each([1, 2, 3, 7, 50, 100])('%i backends: each has its share within 2 percent', (count) => {
  const share = new Map<number, number>()
  for (const index of maglevSlots(backends(count))) share.set(index, (share.get(index) ?? 0) + 1)
  expect([...share.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, at) => at))
  const fair = MAGLEV_SIZE / count
  for (const got of share.values()) expect(Math.abs(got - fair) / fair).toBeLessThan(0.02)
})

test.each([
  [2, 0.01],
  [10, 0.01],
  [30, 0.01],
  [100, 0.015],
])('one of %i goes: its share moves, and little more', (count, more) => {
  const list = backends(count)
  const goner = list[Math.floor(count / 3)]
  const before = holders(list)
  const after = holders(list.filter((one) => one !== goner))
  const moved = before.filter((holder, at) => holder !== after[at]).length / MAGLEV_SIZE
  expect(moved).toBeGreaterThanOrEqual(1 / count - 0.001)
  expect(moved).toBeLessThan(1 / count + more)
})

test('the order of the list does not matter', () => {
  const list = backends(20)
  expect(holders(list.toReversed())).toEqual(holders(list))
})

test('the table of three known backends is what it always was: all nodes must agree, in all versions', () => {
  expect([...maglevSlots(backends(3)).subarray(0, 24)]).toMatchInlineSnapshot(`
    [
      1,
      2,
      1,
      0,
      1,
      1,
      0,
      1,
      2,
      0,
      0,
      2,
      2,
      0,
      0,
      2,
      0,
      1,
      1,
      2,
      1,
      2,
      0,
      1,
    ]
  `)
})
