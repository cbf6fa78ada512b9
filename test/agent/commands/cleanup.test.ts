// SPDX-License-Identifier: Apache-2.0
/** What a clean-up says of its own second look. Layer: test. */
import { expect, test } from 'vitest'
import { verified } from '#agent/commands/cleanup.ts'

const NOTHING = { removed: [], restored: [], failed: [] }
const FIRST = { removed: ['tcx npl1'], restored: ['net/ipv4/ip_forward'], failed: [] }

test('a node where the second look finds nothing is clean', () => {
  expect(verified(FIRST, NOTHING)).toEqual(FIRST)
})

test('what the second look finds, or cannot look at, is a failure', () => {
  expect(verified(FIRST, { removed: ['tcx npl1'], restored: [], failed: ['routes: busy'] })).toEqual({
    ...FIRST,
    failed: ['tcx npl1: there again after it was removed', 'routes: busy'],
  })
})
