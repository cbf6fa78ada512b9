// SPDX-License-Identifier: Apache-2.0
/** What counts of a ControllersConfiguration, and what its status says of that. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { CONFIGURATION, configurationStatus, configuredBy } from '#controllers/config/configuration.ts'

const enabled = { controllers: { node: { hostEndpoint: { autoCreate: 'Enabled' } } } }
const object = (spec: object, status: object = {}): ApiObject =>
  asApiObject({ ...CONFIGURATION, metadata: { name: 'default', generation: 7 }, spec, status })
const isEnabled = (...of: Parameters<typeof configuredBy>): boolean => configuredBy(...of).settings.hostEndpoints.autoCreate

test('a refused spec leaves what counted before: in this process, else by the status, else as without one', () => {
  const refused = { prometheusMetricsPort: 1 }
  const { settings } = configuredBy(object(enabled), undefined)
  expect(isEnabled(object(refused), settings)).toBe(true)
  expect(isEnabled(object(refused, { runningConfig: enabled }), undefined)).toBe(true)
  expect(isEnabled(object(refused, { runningConfig: refused }), undefined)).toBe(false)
  expect(isEnabled(object(refused), undefined)).toBe(false)
  expect(isEnabled(undefined, settings)).toBe(false)
})

test('the time of a condition is that of its last change, whatever its words', () => {
  const work = { ok: true, reason: 'Synced', message: '1 automatic host endpoints' }
  const status = (found: ApiObject, now: string, ok = true) =>
    configurationStatus(configuredBy(found, undefined), { found, work: { ...work, ok }, now })
  const first = status(object(enabled), 'then')
  expect(first).toMatchObject({ observedGeneration: 7, runningConfig: enabled })
  const again = status(object(enabled, first), 'now')
  expect(again).toEqual(first)
  expect(status(object(enabled, first), 'now', false)['conditions']).toMatchObject([
    { type: 'Accepted', lastTransitionTime: 'then' },
    { type: 'Synced', status: 'False', lastTransitionTime: 'now' },
  ])
})
