// SPDX-License-Identifier: Apache-2.0
/** The endpoint's config map: what is taken, and what is refused with which word. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { readEndpoint } from '#operator/run/endpoint.ts'

function mapWith(data: Readonly<Record<string, unknown>>): Parameters<typeof readEndpoint>[0] {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-services-endpoint', namespace: 'netplane-operator' },
    data,
  })
}

test.each([
  ['api.internal.example.com', '6443'],
  ['192.0.2.1', '443'],
  ['2001:db8::1', '6443'],
  ['proxy.local', '6444'],
])('%s port %s is taken as it is', (host, port) => {
  expect(readEndpoint(mapWith({ CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port }))).toEqual({ endpoint: { host, port } })
})

test('without a map there is no endpoint, and nothing is wrong', () => {
  expect(readEndpoint(undefined)).toEqual({ endpoint: undefined })
})

test.each([
  [{}, 'CLUSTER_SERVICE_HOST is missing'],
  [{ CLUSTER_SERVICE_HOST: '[2001:db8::1]', CLUSTER_SERVICE_PORT: '6443' }, 'CLUSTER_SERVICE_HOST must be without brackets: 2001:db8::1'],
  [{ CLUSTER_SERVICE_HOST: 'https://api', CLUSTER_SERVICE_PORT: '6443' }, 'must be a name or an address, without https://'],
  [{ CLUSTER_SERVICE_HOST: 'api_1', CLUSTER_SERVICE_PORT: '6443' }, '"api_1" is neither a name nor an address'],
  [{ CLUSTER_SERVICE_HOST: 'api:6443', CLUSTER_SERVICE_PORT: '6443' }, '"api:6443" is neither a name nor an address'],
  [{ CLUSTER_SERVICE_HOST: 'api' }, 'CLUSTER_SERVICE_PORT is missing'],
  [{ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '0' }, '"0" is no port'],
  [{ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '70000' }, '"70000" is no port'],
])('%j is refused by field and reason', (data, message) => {
  const { endpoint, wrong } = readEndpoint(mapWith(data))
  expect(endpoint).toBeUndefined()
  expect(wrong?.message).toContain(message)
})
