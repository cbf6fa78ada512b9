// SPDX-License-Identifier: Apache-2.0
/** An operator whose endpoint dies while it runs, and what comes of a config map that is put right. The service's
 * address is served as agents serve it. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { chosenServer } from '#lib/control/api-server.ts'
import { createLog } from '#lib/obs/log.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { runOperator } from '#operator/run/run-operator.ts'
import { PORT } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { put } from '../definitions.ts'
import { Relay } from '../relay.ts'
import { BUILD_MS, INSTALLATION, OPERATOR, OperatorCluster } from './operator-cluster.ts'

/** in the server's certificate: the endpoint, and the address of the service */
const ENDPOINT = '10.96.0.250'
const SERVICE = '127.0.0.1'
const SOON = { timeout: 60_000, interval: 100 }

let on: OperatorCluster
let client: ApiClient
const stop = new AbortController()
let operator: Promise<void>
let relay: Relay

beforeAll(async () => {
  on = await OperatorCluster.start()
  client = on.client
  address('replace')
  relay = await Relay.start(ENDPOINT, PORT, SERVICE)
  await put(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR } })
  await setEndpoint(ENDPOINT)
  const at = (host: string): ApiServer => fromKubeconfig(on.cluster.kubeconfig(undefined, host))
  const all = [at(ENDPOINT), at(SERVICE)]
  const [first] = all
  if (first === undefined) throw new Error('no server')
  const server = chosenServer(all, { first, tell: () => undefined })
  const options = { node: undefined, namespace: OPERATOR, systemNamespace: 'netplane-system', healthPort: 0, metricsPort: 0 } as const
  const log = createLog({ level: 'silent' })
  operator = runOperator({
    options,
    server: () => Promise.resolve({ server, pod: { all, at: ({ host }) => at(host) } }),
    log,
    signal: stop.signal,
  })
  operator.catch(() => undefined)
}, BUILD_MS)

afterAll(async () => {
  stop.abort()
  await operator
  await relay[Symbol.asyncDispose]()
  await on[Symbol.asyncDispose]()
  // other files of the namespace may use it
  address('replace')
})

function address(change: 'replace' | 'del'): void {
  execFileSync('ip', ['addr', change, `${ENDPOINT}/32`, 'dev', 'lo'])
}

async function setEndpoint(host: string): Promise<void> {
  const data = { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: String(PORT) }
  await client.apply(asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: ENDPOINT_MAP }, data }))
}

const degraded = (): Promise<string> => on.condition('network', 'Degraded')

/** By which host agents ask. */
async function inUse(): Promise<unknown> {
  return fieldsOf(fieldsOf((await on.found(INSTALLATION))?.['status'])['endpoint'])['host']
}

test('an endpoint that dies is named, and no more once it is back', async () => {
  const spec = { netplaneNetwork: { linuxDataplane: 'BPF' } }
  const installation: ApiObject = asApiObject({ ...INSTALLATION, metadata: { name: 'default' }, spec })
  await expect.poll(() => client.create(installation).then(Boolean, () => false), SOON).toBe(true)
  await expect.poll(inUse, SOON).toBe(ENDPOINT)
  await expect.poll(degraded, SOON).toContain('False AllReady')
  expect(relay.connections).toBeGreaterThan(0)
  address('del')
  await expect.poll(degraded, SOON).toMatch(/^True EndpointSilent agents ask the API server at 10\.96\.0\.250:6443, where .*ENETUNREACH/)
  address('replace')
  await expect.poll(degraded, SOON).toContain('False AllReady')
}, 150_000)

test('when it dies again the config map that is put right is taken, and a wrong one told', async () => {
  address('del')
  await expect.poll(degraded, SOON).toContain('True EndpointSilent')
  await setEndpoint('https://x')
  await expect.poll(degraded, SOON).toContain('True EndpointInvalid')
  await setEndpoint(SERVICE)
  await expect.poll(inUse, SOON).toBe(SERVICE)
  await expect.poll(degraded, SOON).toContain('False AllReady')
}, 200_000)
