// SPDX-License-Identifier: Apache-2.0
/** Whether a field of ours is another client's. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { ownedFields } from '#operator/objects/owned-fields.ts'

function objectWith(metadata: object): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'y', ...metadata } })
}

const applied = (manager: string, fieldsV1: object, operation = 'Apply') => ({ manager, operation, fieldsV1 })

test('our fields are those that we applied, also where other managers have some', () => {
  const ours = { 'f:data': { 'f:a': {} } }
  const object = objectWith({
    managedFields: [
      applied('kubectl', { 'f:data': { 'f:b': {} } }),
      applied('netplane-operator', { 'f:x': {} }, 'Update'),
      applied('netplane-operator', ours),
    ],
  })
  expect(ownedFields(object)).toBe(JSON.stringify(ours))
  expect(ownedFields(objectWith({}))).toBe('')
})
