// SPDX-License-Identifier: Apache-2.0
/** What is kept of objects for a plan. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { factsOf } from '#upgrade/found/trim.ts'
import { definition, facts, information, object } from './installed.ts'

function kept(...objects: readonly ApiObject[]): readonly ApiObject[] {
  return factsOf(facts(objects)).objects
}

test('of a Secret nothing but its metadata is kept, and no copy of its data in an annotation', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"key":"c2VjcmV0"}}', note: 'x' }
  const text = JSON.stringify(
    kept(object('v1 Secret', 'shop/key', { metadata: { annotations }, data: { key: 'c2VjcmV0' }, type: 'Opaque' })),
  )
  expect(text).not.toContain('c2VjcmV0')
  expect(JSON.parse(text)).toEqual([
    { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'key', annotations: { note: 'x' } } },
  ])
})

test('of a pod what policy and addresses go by is kept, and no variables of its containers', () => {
  const container = { name: 'web', image: 'web:1', ports: [{ name: 'http', containerPort: 80 }] }
  const pod = object('v1 Pod', 'shop/web', {
    metadata: { labels: { app: 'web' }, managedFields: [{ manager: 'kubelet' }] },
    spec: {
      nodeName: 'a',
      serviceAccountName: 'web',
      containers: [{ ...container, env: [{ name: 'PASSWORD', value: 'x' }] }],
      volumes: [{ name: 'v' }],
    },
    status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }], containerStatuses: [{}] },
  })
  expect(JSON.parse(JSON.stringify(kept(pod)))).toEqual([
    {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'web', labels: { app: 'web' } } },
      spec: { nodeName: 'a', serviceAccountName: 'web', containers: [container] },
      status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] },
    },
  ])
})

test('of a node its images are left out', () => {
  const node = object('v1 Node', 'a', { spec: { podCIDR: '10.0.0.0/24' }, status: { addresses: [], images: [{ names: ['x'] }] } })
  expect(kept(node)).toMatchObject([{ spec: { podCIDR: '10.0.0.0/24' }, status: { addresses: [] } }])
  expect(JSON.stringify(kept(node))).not.toContain('images')
})

test('of a definition its schemas are left out', () => {
  const [one] = kept(definition('tiers.netplane.io', { group: 'netplane.io', version: 'v3', kind: 'Tier' }))
  expect(one).toMatchObject({ spec: { group: 'netplane.io', versions: [{ name: 'v3' }] }, status: { storedVersions: ['v3'] } })
  expect(JSON.stringify(one)).not.toContain('schema')
})

test('objects of other kinds stay whole, are in one order, and are there once', () => {
  const map = (name: string, value: string): ApiObject => object('v1 ConfigMap', name, { data: { value } })
  const custom = object('example.com/v1 Thing', 'x', { spec: { a: 1 }, other: true })
  const some = [map('n/b', '1'), custom, map('n/a', '1')]
  expect(kept(...some)).toEqual([custom, map('n/a', '1'), map('n/b', '1')])
  expect(kept(...some.toReversed())).toEqual(kept(...some))
  expect(kept(map('n/a', '1'), map('n/a', '2'))).toEqual([map('n/a', '2')])
})

test('what an API server of an older version shows of stored objects is left out', () => {
  const shown = information('netplane.io/v3', { datastoreReady: true })
  const service = (spec: object): ApiObject => object('apiregistration.k8s.io/v1 APIService', 'v3.netplane.io', { spec })
  const aggregated = service({ group: 'netplane.io', service: { name: 'api' } })
  expect(kept(shown, aggregated)).toEqual([aggregated])
  expect(kept(shown, service({ group: 'netplane.io' }))).toContainEqual(shown)
})
