// SPDX-License-Identifier: Apache-2.0
/** Datagrams that are counted where they arrive. */
import { expect, test } from 'vitest'
import { Arrivals, parseProbe, probeText } from '../../../lab/tools/probes.ts'

test('what was sent is what is read', () => {
  const pulse = { id: 'a>b:1v4/0', seq: 12, at: 1_700_000_000_000 }
  expect(parseProbe(probeText(pulse))).toEqual(pulse)
  for (const text of ['', 'a 1', 'a b 2', 'a 1 2 3', 'a 1 2\n']) expect(parseProbe(text)).toBeUndefined()
})

test('arrivals in any order make runs', () => {
  const arrivals = new Arrivals()
  for (const seq of [1, 0, 2, 7, 5, 2]) arrivals.add({ id: 'a', seq, at: 100 + seq })
  expect(arrivals.runs()).toEqual([
    [0, 2, 100, 102],
    [5, 5, 105, 105],
    [7, 7, 107, 107],
  ])
  expect(new Arrivals().runs()).toEqual([])
})
