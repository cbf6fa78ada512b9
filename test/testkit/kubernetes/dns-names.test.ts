// SPDX-License-Identifier: Apache-2.0
/** Names of a cluster and what they mean. Layer: test. */
import { expect, test } from 'vitest'
import { NO_SUCH_NAME } from '../../../testkit/kubernetes/dns-message.ts'
import { lookUp } from '../../../testkit/kubernetes/dns-names.ts'

const HTTP = { name: 'http', port: 80, targetPort: 8080, protocol: 'TCP' }
const SERVICES: Readonly<Record<string, unknown>> = {
  web: service('web', { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'], ports: [HTTP] }),
  db: service('db', { clusterIP: 'None', ports: [HTTP] }),
  out: service('out', { type: 'ExternalName', externalName: 'web.n.svc.cluster.local' }),
}
const SLICES = {
  items: [
    { endpoints: [{ addresses: ['10.1.0.1'], hostname: 'db-0', conditions: { ready: true } }] },
    { endpoints: [{ addresses: ['10.1.0.2'], hostname: 'db-1', conditions: { ready: false } }] },
  ],
}

function service(name: string, spec: object): object {
  return { metadata: { namespace: 'n', name }, spec }
}

function get(path: string): Promise<unknown> {
  if (path === '/api/v1/services') return Promise.resolve({ items: Object.values(SERVICES) })
  const wanted = /^\/api\/v1\/namespaces\/n\/services\/(\w+)$/.exec(path)?.[1]
  if (wanted !== undefined) return Promise.resolve(SERVICES[wanted])
  return Promise.resolve(path.startsWith('/apis/discovery.k8s.io/v1/namespaces/n/endpointslices?labelSelector=') ? SLICES : undefined)
}

test.each([
  ['web.n.svc.cluster.local', { addresses: ['10.96.0.1', 'fd00::1'], code: 0 }],
  ['db.n.svc.cluster.local', { addresses: ['10.1.0.1'], code: 0 }],
  ['db-0.db.n.svc.cluster.local', { addresses: ['10.1.0.1'], code: 0 }],
  ['db-1.db.n.svc.cluster.local', { addresses: [], code: NO_SUCH_NAME }],
  ['out.n.svc.cluster.local', { alias: 'web.n.svc.cluster.local', addresses: ['10.96.0.1', 'fd00::1'], code: 0 }],
  ['gone.n.svc.cluster.local', { addresses: [], code: NO_SUCH_NAME }],
  ['_http._tcp.web.n.svc.cluster.local', { addresses: [], places: [{ host: 'web.n.svc.cluster.local', port: 80 }], code: 0 }],
  ['_http._tcp.db.n.svc.cluster.local', { addresses: [], places: [{ host: 'db-0.db.n.svc.cluster.local', port: 8080 }], code: 0 }],
  ['_http._udp.web.n.svc.cluster.local', { addresses: [], code: NO_SUCH_NAME }],
  ['1.0.96.10.in-addr.arpa', { addresses: [], pointer: 'web.n.svc.cluster.local', code: 0 }],
  ['2.0.96.10.in-addr.arpa', { addresses: [], code: NO_SUCH_NAME }],
  ['example.org', { addresses: [], code: NO_SUCH_NAME }],
])('%s', async (name, answer) => {
  expect(await lookUp(name, get)).toEqual(answer)
})
