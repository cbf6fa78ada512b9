// SPDX-License-Identifier: Apache-2.0
/** Generated pages are what the code says. Layer: test. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { allFields } from '#agent/config/schema.ts'
import { configPage } from '#agent/config/docs.ts'
import { pages } from '../../../scripts/generate-docs.ts'

test.each([...pages])('%s is up to date', async (path, make) => {
  expect(readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8')).toBe(await make())
})

test('every field has its row', () => {
  for (const { name } of allFields) expect(configPage()).toContain(`| \`${name}\` |`)
  expect(
    allFields.every(({ doc, fallbackText, fallback }) => doc.endsWith('.') && (fallback === undefined) === (fallbackText === '')),
  ).toBe(true)
  expect(new Set(allFields.map(({ name }) => name)).size).toBe(allFields.length)
})
