// SPDX-License-Identifier: Apache-2.0
/** Which version an Installation says that all nodes run. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import type { ComponentState } from '#lib/control/rollout.ts'
import { installationStatus, versionOf } from '#operator/status/installation-status.ts'

const CAUSE = { reason: 'RollingOut', message: '' }

function installation(status?: object): ReturnType<typeof asApiObject> {
  return asApiObject({
    apiVersion: 'operator.netplane.io/v1',
    kind: 'Installation',
    metadata: { name: 'default' },
    ...(status && { status }),
  })
}

interface Row {
  readonly name: string
  readonly network: ComponentState | undefined
  readonly was: string | undefined
  readonly wanted: string | undefined
}

test.each<Row>([
  { name: 'all in place', network: {}, was: 'v3.31.4', wanted: 'v3.31.5' },
  { name: 'in place, with a fault beside', network: { degraded: CAUSE }, was: undefined, wanted: 'v3.31.5' },
  { name: 'a rollout', network: { progressing: CAUSE }, was: 'v3.31.4', wanted: 'v3.31.4' },
  { name: 'not there', network: { unavailable: CAUSE }, was: 'v3.31.4', wanted: 'v3.31.4' },
  { name: 'a first rollout', network: { unavailable: CAUSE, progressing: CAUSE }, was: undefined, wanted: undefined },
  { name: 'not known', network: undefined, was: 'v3.31.4', wanted: 'v3.31.4' },
])('$name', ({ network, was, wanted }) => {
  const found = installation(was === undefined ? undefined : { version: was })
  expect(versionOf(found, network, '3.31.5')).toBe(wanted)
})

test('the status has it, or has no such field', () => {
  const state = { computed: undefined, endpoint: undefined, isInstalled: true, generation: 1, conditions: [] }
  expect(installationStatus({ ...state, version: 'v3.31.5' })).toMatchObject({ version: 'v3.31.5' })
  expect(installationStatus({ ...state, version: undefined })).not.toHaveProperty('version')
})
