// SPDX-License-Identifier: Apache-2.0
/** The project's own truth tables hold for the evaluator, and a wrong answer is noticed. Layer: test. */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { askFailsafes, explainer, failsafeTable } from './failsafes.ts'
import { compare, tablesIn } from './tables.ts'
import type { Adapter } from './tables.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const tables = tablesIn(`${here}cases`)
const { default: evaluator } = (await import(`${here}evaluator-adapter.mjs`)) as { readonly default: Adapter }

describe('the evaluator', () => {
  test.each(tables)('$id: $description', async (table) => {
    const { asked, wrong } = await compare(evaluator, table)
    expect([asked > 100, wrong]).toEqual([true, []])
  })
})

test('an adapter that allows everything is found out', async () => {
  const blind: Adapter = { name: 'blind', load: () => undefined, verdict: () => ({ ingress: true, egress: true }) }
  const [first] = tables
  if (first === undefined) throw new Error('no tables')
  const { wrong } = await compare(blind, first)
  expect(wrong.length).toBeGreaterThan(10)
  expect(wrong[0]).toMatch(/^\S+ step 0: \S+ to \S+, \S+: \.\. instead of /)
})

test(`explain: ${failsafeTable.description}`, () => {
  const { asked, wrong } = askFailsafes(explainer, failsafeTable)
  expect([asked > 300, wrong]).toEqual([true, []])
})

test.each(['.', 'X'])('a judge that says "%s" of every packet is found out', (answer) => {
  const { asked, wrong } = askFailsafes({ name: 'blind', answer: () => answer }, failsafeTable)
  expect(asked - wrong.length).toBeGreaterThan(50)
  expect(wrong.length).toBeGreaterThan(50)
  expect(wrong[0]).toMatch(/^IPv4, list 0, normal: in TCP \S+ \S+ > \S+ \(.*\): [.X] instead of [.X]$/)
})
