// SPDX-License-Identifier: Apache-2.0
/** Messages that name nodes stay short. Layer: test. */
import { expect, test } from 'vitest'
import { namesText } from '#lib/control/names-text.ts'

const nodes = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `n${String(at).padStart(4, '0')}`)

test.each([
  [['b', 'a', 'b'], 'a, b'],
  [nodes(10), nodes(10).join(', ')],
  [nodes(11), `${nodes(10).join(', ')} and 1 more`],
  [nodes(5000), `${nodes(10).join(', ')} and 4,990 more`],
  [[], ''],
])('names are sorted, each once, ten at most: %#', (names, text) => {
  expect(namesText(names)).toBe(text)
})
