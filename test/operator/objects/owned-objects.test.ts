// SPDX-License-Identifier: Apache-2.0
/** What the operator takes away, and in which order. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { silentLog } from '#lib/obs/log.ts'
import { IGNORE } from '#lib/control/declared-managers.ts'
import { FIELD_MANAGER } from '#operator/objects/owned-fields.ts'
import { OwnedObjects } from '#operator/objects/owned-objects.ts'

const OURS = [{ manager: FIELD_MANAGER, operation: 'Apply', fieldsV1: { 'f:data': {} } }]

function object(kind: string, name: string, metadata: object = {}): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind, metadata: { namespace: 'n', name, managedFields: OURS, ...metadata } })
}

/** Of what is there and no longer rendered: what is deleted, in its order, and what is left alone. */
async function pruned(
  present: readonly ApiObject[],
  mayAct = (): boolean => true,
): Promise<{ deleted: string[]; leftAlone: readonly string[] }> {
  const deleted: string[] = []
  const never = (): Promise<never> => Promise.reject(new Error('not asked for'))
  const client = {
    apply: never,
    get: never,
    delete: ({ kind, name }: Named): Promise<void> => {
      deleted.push(`${kind} ${name}`)
      return Promise.resolve()
    },
  }
  const owned = new OwnedObjects({ client, log: silentLog })
  owned.setDesired([])
  await owned.prune(present, mayAct, new AbortController().signal)
  return { deleted, leftAlone: owned.leftAlone }
}

test('secrets go before the binding by which they may be deleted', async () => {
  const { deleted } = await pruned([object('RoleBinding', 'secrets'), object('Secret', 'pull')])
  expect(deleted).toEqual(['Secret pull', 'RoleBinding secrets'])
})

test('what another client has applied, a namespace, and what is about to go stay', async () => {
  const others = object('ConfigMap', 'theirs', { managedFields: [{ manager: 'kubectl', operation: 'Apply', fieldsV1: {} }] })
  const going = object('ConfigMap', 'going', { deletionTimestamp: '2026-11-26T08:00:00Z' })
  expect(await pruned([others, object('Namespace', 'n'), going])).toEqual({ deleted: [], leftAlone: [] })
})

test('an object whose annotation asks to leave it is named', async () => {
  const { deleted, leftAlone } = await pruned([object('DaemonSet', 'agents', { annotations: { [IGNORE]: 'true' } })])
  expect([deleted, leftAlone]).toEqual([[], ['DaemonSet n/agents']])
})

test('nothing is deleted once another process may act', async () => {
  expect((await pruned([object('ConfigMap', 'old')], () => false)).deleted).toEqual([])
})
