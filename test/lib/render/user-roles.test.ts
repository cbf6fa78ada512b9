// SPDX-License-Identifier: Apache-2.0
/** What Kubernetes' roles of namespaces get of our kinds. Layer: test. */
import { expect, test } from 'vitest'
import { felixSchema } from '#agent/config/open-api.ts'
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import { resources } from '#lib/kube/resources.ts'
import { OPERATOR_PODS, renderOperator } from '#lib/render/operator-pod.ts'
import { userRoles } from '#lib/render/definitions.ts'

const AGGREGATED = 'rbac.authorization.k8s.io/aggregate-to-'

/** By Kubernetes' role, "verb plural" of all that it gets. */
function gained(role: string): ReadonlySet<string> {
  const of = userRoles().map(fieldsOf)
  const own = of.filter(({ metadata }) => fieldsOf(fieldsOf(metadata)['labels'])[`${AGGREGATED}${role}`] === 'true')
  const texts = own.flatMap(({ rules }) =>
    objectsIn(rules).flatMap(({ apiGroups, resources: plurals, verbs }) => {
      expect(apiGroups).toEqual(['netplane.io'])
      return (plurals as string[]).flatMap((plural) => (verbs as string[]).map((verb) => `${verb} ${plural}`))
    }),
  )
  return new Set(texts)
}

test.each([
  ['view', ['get', 'list', 'watch']],
  ['edit', ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']],
  ['admin', ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']],
])('the role %s of a namespace gets %j of every namespaced kind, and no kind of the whole cluster', (role, verbs) => {
  const namespaced = resources(felixSchema()).filter((one) => one.namespaced)
  expect(namespaced.map(({ kind }) => kind)).toContain('NetworkPolicy')
  expect(gained(role)).toEqual(new Set(namespaced.flatMap(({ plural }) => verbs.map((verb) => `${verb} ${plural}`))))
})

test('the manifest of the operator has these roles', () => {
  const objects = renderOperator({ namespace: 'n', image: 'i', pods: OPERATOR_PODS })
  expect(objects).toEqual(expect.arrayContaining([...userRoles()]))
})
