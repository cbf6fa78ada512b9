// SPDX-License-Identifier: Apache-2.0
/** Whose an object is, and whether a field of ours is another client's. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { foreignOwner, ownedFields } from '#operator/objects/owned-fields.ts'

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

test.each([
  [{ labels: { 'app.kubernetes.io/managed-by': 'netplane-operator' } }, undefined],
  [{ labels: { 'app.kubernetes.io/managed-by': 'Helm' }, annotations: { 'meta.helm.sh/release-name': 'net' } }, "the chart's release net"],
  [{ annotations: { 'argocd.argoproj.io/tracking-id': 'app:x' } }, 'Argo CD (app:x)'],
  [{ labels: { 'app.kubernetes.io/managed-by': 'terraform' } }, 'terraform'],
  [{ managedFields: [applied('kubectl-client-side-apply', {}, 'Update')] }, 'kubectl-client-side-apply'],
  [{}, 'another client'],
])('%j belongs to %s', (metadata, owner) => {
  expect(foreignOwner(objectWith(metadata))).toBe(owner)
})
