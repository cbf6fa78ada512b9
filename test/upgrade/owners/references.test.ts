// SPDX-License-Identifier: Apache-2.0
/** Owner references that are kept aside and put back. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { keptReferences, KEPT, ourReferences, withOurs, withoutOurs, type OwnerReference } from '#upgrade/owners/references.ts'

const OTHER: OwnerReference = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop', uid: '1' }
const SHOWN: OwnerReference = { apiVersion: 'netplane.io/v3', kind: 'NetworkSet', name: 'suppliers', uid: '2', controller: true }
const STORED: OwnerReference = { apiVersion: 'crd.netplane.io/v1', kind: 'NetworkSet', name: 'suppliers', uid: '3' }
const OPERATORS: OwnerReference = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default', uid: '4' }

function object(ownerReferences: readonly object[], annotations: Readonly<Record<string, string>> = {}): ApiObject {
  const metadata = { namespace: 'shop', name: 'menu', uid: 'u', resourceVersion: '7', ownerReferences, annotations }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata }
}

test('owners of the API group and of stored objects are ours, and no other', () => {
  expect(ourReferences(object([OTHER, SHOWN, STORED, OPERATORS]))).toEqual([SHOWN, STORED])
})

test('what is taken away is kept with all its fields, and the patch is for the object that was read', () => {
  expect(withoutOurs(object([OTHER, SHOWN, OPERATORS]), [])).toEqual({
    metadata: {
      uid: 'u',
      resourceVersion: '7',
      ownerReferences: [OTHER, OPERATORS],
      annotations: { [KEPT]: JSON.stringify([SHOWN]) },
    },
  })
  expect(withoutOurs(object([OTHER, OPERATORS]), [])).toBeUndefined()
})

test('a reference that comes again meanwhile is kept once, and those from before stay', () => {
  const before = { ...SHOWN, name: 'offices' }
  const again = { ...SHOWN, uid: '9' }
  expect(withoutOurs(object([again]), [SHOWN, before])?.metadata.annotations).toEqual({ [KEPT]: JSON.stringify([before, again]) })
})

test('owners of today take the place of references to the same object, beside those of others', () => {
  const today = { ...SHOWN, uid: '8' }
  expect(withOurs(object([OTHER, STORED]), [today]).metadata).toMatchObject({
    ownerReferences: [OTHER, today],
    annotations: { [KEPT]: null },
  })
})

test.each(['', 'x', '{}', '[1]', '[{"kind":"NetworkSet"}]'])('an annotation %j is no list of references', (text) => {
  expect(keptReferences(object([], { [KEPT]: text }))).toBeUndefined()
})

test('an object without the annotation has kept nothing', () => {
  expect(keptReferences(object([SHOWN]))).toEqual([])
  expect(keptReferences(object([], { [KEPT]: JSON.stringify([SHOWN]) }))).toEqual([SHOWN])
})
