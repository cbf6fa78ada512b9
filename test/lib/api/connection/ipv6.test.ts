// SPDX-License-Identifier: Apache-2.0
/** An API server at an IPv6 address, which the config map has without brackets and a URL with them. Layer: test. */
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { Authority } from '../../../../testkit/kubernetes/certificates.ts'

let folder = ''
let port = 0
let server: Server
/** Host headers, as they came */
const hosts: (string | undefined)[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-ipv6-'))
  const authority = await Authority.make(folder)
  const { certificate, key } = await authority.issue('server', '/CN=server', ['IP:::1'])
  copyFileSync(authority.certificate, join(folder, 'ca.crt'))
  writeFileSync(join(folder, 'token'), 't')
  server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, ({ headers }, response) => {
    hosts.push(headers.host)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } }))
  })
  server.listen(0, '::1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

function byVariables(host: string): ApiServer {
  return inCluster({ env: { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: String(port) }, account: folder })
}

function byFile(): ApiServer {
  const path = join(folder, 'kubeconfig')
  const cluster = { server: `https://[::1]:${port}`, 'certificate-authority': 'ca.crt' }
  const config = { clusters: [{ name: 'c', cluster }], contexts: [{ name: 'x', context: { cluster: 'c' } }], 'current-context': 'x' }
  writeFileSync(path, JSON.stringify(config))
  return fromKubeconfig(path)
}

test.each([
  ['the config map, without brackets', () => byVariables('::1')],
  ['the config map, in another form', () => byVariables('0:0:0:0:0:0:0:1')],
  ['variables with brackets', () => byVariables('[::1]')],
  ['a kubeconfig', byFile],
])('%s', async (_title, make) => {
  const api = make()
  expect(api.host).not.toMatch(/[[\]]/)
  await using client = new ApiClient({ server: api })
  expect((await client.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' })).metadata.name).toBe('kube-system')
  expect(hosts.at(-1)).toMatch(new RegExp(`^\\[[0:]+1\\]:${port}$`))
})
