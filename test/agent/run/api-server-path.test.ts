// SPDX-License-Identifier: Apache-2.0
/** Lists by which the agent knows its own way in maps of before. Layer: test. */
import { expect, test } from 'vitest'
import { SERVERS } from '#agent/run/api-server-path.ts'
import { listId } from '#agent/compile/services/list-ids.ts'

test('an agent knows the backends of default/kubernetes as it writes them, and as agents before did', () => {
  const ref = { namespace: 'default', name: 'kubernetes', port: 'https', local: false } as const
  expect([...SERVERS]).toEqual(expect.arrayContaining([listId({ ...ref, family: 'IPv4' }), listId({ ...ref, family: 'IPv6' })]))
  // of np_frontends of a node whose agent was of 2026-11-25
  expect([...SERVERS]).toEqual(expect.arrayContaining(['ce337d3c30ffcbac', '14a3e8269dd31dbc']))
  expect(SERVERS.size).toBe(8)
})
