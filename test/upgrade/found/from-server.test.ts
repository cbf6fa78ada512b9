// SPDX-License-Identifier: Apache-2.0
/** Facts from a server that lacks kinds, or refuses them. Layer: test. */
import { expect, test } from 'vitest'
import { ApiError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { factsFromServer, type FactsClient } from '#upgrade/found/from-server.ts'
import { definition, object } from './installed.ts'

const SIGNAL = new AbortController().signal

/** Of each kind its objects, or with which status of HTTP the server answers. */
function serverOf(kinds: Readonly<Record<string, readonly ApiObject[] | number>>): FactsClient {
  return {
    request: () => Promise.resolve({ gitVersion: 'v1.34.1' }),
    async *pages({ kind, namespace }) {
      const answer = await Promise.resolve(kinds[kind] ?? 404)
      if (typeof answer === 'number') throw new ApiError({ status: answer, reason: '', message: kind })
      const items = answer.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      yield { items, resourceVersion: '1', continue: '' }
    },
  }
}

const namespaces = [object('v1 Namespace', 'kube-system')]

test('a kind that the server does not know has no objects', async () => {
  const gone = definition('tiers.crd.netplane.io', { group: 'crd.netplane.io', version: 'v1', kind: 'Tier' })
  const { serverVersion, objects } = await factsFromServer(serverOf({ Namespace: namespaces, CustomResourceDefinition: [gone] }), SIGNAL)
  expect(serverVersion).toBe('v1.34.1')
  expect(objects.map(({ kind }) => kind)).toEqual(['CustomResourceDefinition', 'Namespace'])
})

test('a kind that may not be read keeps a plan from being made', async () => {
  await expect(factsFromServer(serverOf({ Namespace: namespaces, Secret: 403 }), SIGNAL)).rejects.toThrow('Secret')
})

test('config maps come from the namespaces of the product alone', async () => {
  const maps = ['kube-system', 'netplane-system', 'shop'].map((namespace) => object('v1 ConfigMap', `${namespace}/x`))
  const { objects } = await factsFromServer(serverOf({ ConfigMap: maps }), SIGNAL)
  expect(objects.map(({ metadata }) => metadata.namespace)).toEqual(['kube-system', 'netplane-system'])
})

test('a definition whose stored version is not served is no reason to ask', async () => {
  const whole = definition('tiers.netplane.io', { group: 'netplane.io', version: 'v3', kind: 'Tier' })
  const names = { group: 'netplane.io', names: { kind: 'Tier', plural: 'tiers' } }
  const unserved = { ...whole, spec: { ...names, versions: [{ name: 'v3', served: false, storage: true }] } }
  const { objects } = await factsFromServer(serverOf({ CustomResourceDefinition: [unserved], Tier: 500 }), SIGNAL)
  expect(objects.map(({ kind }) => kind)).toEqual(['CustomResourceDefinition'])
})
