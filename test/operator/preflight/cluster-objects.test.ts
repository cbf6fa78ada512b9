// SPDX-License-Identifier: Apache-2.0
/** Which pods of a cluster are read for a preflight. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { PLATFORMS } from '#lib/render/providers.ts'
import { readClusterObjects } from '#operator/preflight/cluster-objects.ts'

const pod = (name: string, ip: string, spec: object = {}): ApiObject =>
  asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'x' }, spec, status: { podIPs: [{ ip }] } })
const PODS = [pod('api', '172.30.0.9'), pod('web', '172.30.0.10'), pod('host', '172.30.0.9', { hostNetwork: true })]

async function* pages(): AsyncGenerator<{ readonly items: readonly ApiObject[] }> {
  yield await Promise.resolve({ items: PODS })
}

test.each([
  ['172.30.0.9', ['api']],
  ['api.example.com', []],
  [undefined, []],
])('of plain pods those that have the endpoint %s as their own address', async (host, expected) => {
  const client = { get: () => Promise.resolve(pod('kube-proxy', '')), list: () => Promise.resolve([]), pages }
  const asked = { platform: PLATFORMS.Generic, endpoint: host === undefined ? undefined : { host, port: '6443' } }
  const read = readClusterObjects(client as never, asked, AbortSignal.timeout(5000))
  expect((await read).pods.map(({ metadata }) => metadata.name)).toEqual(expected)
})
