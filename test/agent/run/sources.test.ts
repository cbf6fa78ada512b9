// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { afterEach, expect, test, vi } from 'vitest'
import { silentLog, type Log } from '#lib/obs/log.ts'
import { openSource } from '#agent/run/sources.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test.each([
  ['', ['api-server-path.by-service no CLUSTER_SERVICE_HOST was in config map cluster-services-endpoint of netplane-system']],
  ['api.example', []],
])('with the direct address %j the log warns that the API server is asked by its service: %j', async (direct, says) => {
  vi.stubEnv('CLUSTER_SERVICE_HOST', direct)
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.96.0.1')
  vi.stubEnv('NAMESPACE', 'netplane-system')
  const said: string[] = []
  const log: Log = { ...silentLog, warn: ({ reason }, event) => said.push(`${event} ${String(reason)}`) }
  const { client, byService } = await openSource({ kind: 'in-cluster' }, { node: 'n1', log })
  await client?.[Symbol.asyncDispose]()
  expect(said.map((text) => text.split(' when ')[0])).toEqual(says)
  expect(byService === undefined).toBe(says.length === 0)
})
