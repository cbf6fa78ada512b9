// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { keyOf } from '#lib/api/informer.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { copyPullSecrets } from '#operator/objects/pull-secrets.ts'

const PULL = 'kubernetes.io/dockerconfigjson'

/** `place`: "namespace/name". */
function secret(place: string, content: string, type = PULL): ApiObject {
  const [namespace, name] = place.split('/')
  const metadata = { namespace, name, labels: { team: 'a' }, uid: 'u', resourceVersion: '7' }
  return asApiObject({ apiVersion: 'v1', kind: 'Secret', metadata, type, data: { '.dockerconfigjson': content } })
}

function copies(names: readonly string[], ...found: readonly ApiObject[]): unknown {
  const of = (namespace: string): ReadonlyMap<string, ApiObject> =>
    new Map(found.flatMap((one) => (one.metadata.namespace === namespace ? [[keyOf(one), one]] : [])))
  const secrets = { from: 'own', sources: of('own'), copies: of('system') }
  const { objects, wrong } = copyPullSecrets({ names, found: secrets, to: 'system' })
  return [objects, wrong?.message]
}

const copy = (name: string, content: string): object => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'system' }, type: PULL },
  data: { '.dockerconfigjson': content },
})

test('what is named is copied, once, without what others say of it; the rest stays where it is', () => {
  expect(copies(['b', 'a', 'b'], secret('own/a', 'x'), secret('own/b', 'y'), secret('own/c', 'z'))).toEqual([
    [copy('b', 'y'), copy('a', 'x')],
    undefined,
  ])
})

test('what is missing is named, and its copy stays as it was', () => {
  expect(copies(['a', 'b'], secret('system/a', 'old'))).toEqual([
    [copy('a', 'old')],
    'spec.imagePullSecrets: namespace own has no secret a, b',
  ])
})

test('a secret of another type is not copied, and named', () => {
  const text = 'spec.imagePullSecrets: namespace own has no secret b; not of type kubernetes.io/dockerconfigjson: secret a'
  expect(copies(['a', 'b'], secret('own/a', 'token', 'kubernetes.io/service-account-token'))).toEqual([[], text])
})
