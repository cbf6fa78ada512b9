// SPDX-License-Identifier: Apache-2.0
/** The part of a kubelet that an API server asks for the logs of containers. Layer: test. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import type { Authority } from '../../testkit/kubernetes/certificates.ts'

export interface Kubelet extends AsyncDisposable {
  /** what it was asked, with queries */
  readonly asked: readonly string[]
}

/** Of a node that it makes. `logs`: by "namespace/pod/container"; what is not there is an error. */
export async function startKubelet(
  client: ApiClient,
  { node, authority, logs }: { readonly node: string; readonly authority: Authority; readonly logs: ReadonlyMap<string, string> },
): Promise<Kubelet> {
  const { certificate, key } = await authority.issue('kubelet', `/O=system:nodes/CN=system:node:${node}`, ['IP:127.0.0.1'])
  const asked: string[] = []
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, ({ url = '' }, response) => {
    asked.push(url)
    const { pathname, searchParams } = new URL(url, 'https://node')
    const name = pathname.replace(/^\/containerLogs\//, '') + (searchParams.get('previous') === 'true' ? ' before' : '')
    const text = logs.get(name)
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(text ?? 'no such container')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const made = await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } }))
  const status = {
    ...(isObject(made['status']) ? made['status'] : {}),
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  }
  await client.update({ ...made, status }, { subresource: 'status' })
  return {
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
