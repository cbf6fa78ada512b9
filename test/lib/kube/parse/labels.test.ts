// SPDX-License-Identifier: Apache-2.0
/** Selectors as long as an object may be. Layer: test. */
import { expect, test } from 'vitest'
import { labelSelector } from '#lib/kube/parse/labels.ts'

test('labels that a selector wants are as many as an object has room for', () => {
  const matchLabels = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [at.toString(36), '']))
  const selector = labelSelector({ matchLabels })
  expect(selector.op === 'and' ? selector.of.length : 0).toBe(200_000)
})
