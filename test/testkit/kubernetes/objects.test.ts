// SPDX-License-Identifier: Apache-2.0
/** Manifests become the requests that an API server expects. Layer: test. */
import { expect, test } from 'vitest'
import { requestsFor } from '../../../testkit/kubernetes/objects.ts'

test.each([
  [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, status: {} }, ['POST /api/v1/nodes']],
  [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } }, ['POST /api/v1/namespaces/default/services']],
  [
    { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'n', name: 's' }, status: { loadBalancer: {} } },
    ['POST /api/v1/namespaces/n/services', 'PATCH /api/v1/namespaces/n/services/s/status'],
  ],
  [
    { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { namespace: 'n', name: 'e' } },
    ['POST /apis/discovery.k8s.io/v1/namespaces/n/endpointslices'],
  ],
  [{ apiVersion: 'crd.projectcalico.org/v1', kind: 'FelixConfiguration', metadata: { name: 'default' } }, []],
])('%j', (object, requests) => {
  expect(requestsFor(object).map(({ method, path }) => `${method} ${path}`)).toEqual(requests)
})
