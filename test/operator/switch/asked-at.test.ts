// SPDX-License-Identifier: Apache-2.0
/** When a mode was asked for, by what the API server remembers of an Installation. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { askedAt } from '#operator/switch/asked-at.ts'

const MADE = '2026-11-26T08:00:00Z'

function since(managedFields: readonly object[]): string {
  const metadata = { name: 'default', creationTimestamp: MADE, managedFields }
  const installation = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata })
  return new Date(askedAt(installation)).toISOString()
}

/** A client's last write, and what it has set. */
const write = (time: string, fieldsV1: object): object => ({ manager: 'kubectl', operation: 'Update', time, fieldsV1 })
const mode = { 'f:spec': { 'f:netplaneNetwork': { 'f:linuxDataplane': {} } } }

test('an Installation that says no mode asks since it was made, whatever else is written', () => {
  expect(since([])).toBe('2026-11-26T08:00:00.000Z')
  expect(since([write('2026-11-26T09:00:00Z', { 'f:spec': { 'f:registry': {} } })])).toBe('2026-11-26T08:00:00.000Z')
})

test('one whose mode was written later asks since then, by the last who wrote it', () => {
  const writes = [write('2026-11-26T10:00:00Z', mode), write('2026-11-26T09:00:00Z', mode), write('2026-11-26T11:00:00Z', {})]
  expect(since(writes)).toBe('2026-11-26T10:00:00.000Z')
})
