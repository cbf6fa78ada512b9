// SPDX-License-Identifier: Apache-2.0
/** Names of a cluster and what they mean. Layer: test. */
import { expect, test } from 'vitest'
import { NO_SUCH_NAME } from './dns-message.ts'
import { lookUp } from './dns-names.ts'

const SERVICES: Readonly<Record<string, unknown>> = {
  web: { spec: { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'] } },
  db: { spec: { clusterIP: 'None' } },
  out: { spec: { type: 'ExternalName', externalName: 'web.n.svc.cluster.local' } },
}
const SLICES = {
  items: [
    { endpoints: [{ addresses: ['10.1.0.1'], hostname: 'db-0', conditions: { ready: true } }] },
    { endpoints: [{ addresses: ['10.1.0.2'], hostname: 'db-1', conditions: { ready: false } }] },
  ],
}

function get(path: string): Promise<unknown> {
  const service = /^\/api\/v1\/namespaces\/n\/services\/(\w+)$/.exec(path)?.[1]
  if (service !== undefined) return Promise.resolve(SERVICES[service])
  return Promise.resolve(path.startsWith('/apis/discovery.k8s.io/v1/namespaces/n/endpointslices?labelSelector=') ? SLICES : undefined)
}

test.each([
  ['web.n.svc.cluster.local', { addresses: ['10.96.0.1', 'fd00::1'], code: 0 }],
  ['db.n.svc.cluster.local', { addresses: ['10.1.0.1'], code: 0 }],
  ['db-0.db.n.svc.cluster.local', { addresses: ['10.1.0.1'], code: 0 }],
  ['db-1.db.n.svc.cluster.local', { addresses: [], code: NO_SUCH_NAME }],
  ['out.n.svc.cluster.local', { alias: 'web.n.svc.cluster.local', addresses: ['10.96.0.1', 'fd00::1'], code: 0 }],
  ['gone.n.svc.cluster.local', { addresses: [], code: NO_SUCH_NAME }],
  ['example.org', { addresses: [], code: NO_SUCH_NAME }],
])('%s', async (name, answer) => {
  expect(await lookUp(name, get)).toEqual(answer)
})
