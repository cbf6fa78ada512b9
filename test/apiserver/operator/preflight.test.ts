// SPDX-License-Identifier: Apache-2.0
/** What a preflight says of endpoints, asked with the rights that its pods have; a real API server takes these pods.
 * Layer: test. */
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { parsePort } from '#lib/base/ip.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { PREFLIGHT, renderPreflight } from '#lib/render/preflight-pod.ts'
import { probeEndpoint, type EndpointOptions } from '#agent/preflight/endpoint.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { Authority } from '../../../testkit/kubernetes/certificates.ts'
import { LoopbackCluster, PORT } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { tokenFor } from '../accounts.ts'
import { Relay } from '../relay.ts'

const folder = mkdtempSync(join(tmpdir(), 'netplane-api-preflight-'))
const account = join(folder, 'account')
/** in the server's certificate */
const NAME = 'kubernetes'
const SERVER = '127.0.0.1'

let stack: AsyncDisposableStack
let cluster: LoopbackCluster
let client: ApiClient
let uid: string

beforeAll(async () => {
  stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(folder, { recursive: true }))
  cluster = stack.use(await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') }))
  client = stack.use(new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) }))
  uid = (await client.get({ apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' })).metadata.uid ?? ''
  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-system' } })
  const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: undefined })
  const input = {
    namespace: 'netplane-system',
    image: 'netplane:3.31.5',
    computed,
    endpoint: { host: NAME, port: String(PORT) },
    vxlanPort: 4789,
  }
  const objects = renderPreflight({ ...input, serviceAddresses: ['10.96.0.1'], peers: [{ name: 'n1', addresses: [SERVER] }], run: '1' })
  // refused: a container that may not have what it asks for
  for (const object of objects) await client.apply(object)
  const owner = await client.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace: 'netplane-system', name: PREFLIGHT })
  mkdirSync(account)
  copyFileSync(cluster.authority, join(account, 'ca.crt'))
  writeFileSync(join(account, 'token'), tokenFor(owner, join(folder, 'cluster/accounts.key'), 3600))
}, 120_000)

afterAll(async () => {
  await stack.disposeAsync()
})

interface Asked extends Partial<EndpointOptions> {
  readonly host?: string
  readonly port?: number
}

/** "endpoint-refused 127.0.0.1:1", and the facts. */
async function ask({ host = SERVER, port = PORT, ...more }: Asked = {}): Promise<readonly [readonly string[], object]> {
  const endpoint = { host, port: parsePort(port) }
  const { findings, facts } = await probeEndpoint({ endpoint, serviceAddresses: ['10.96.0.1', 'fd96::1'], account, ...more })
  return [findings.map(({ code, args }) => [code, ...args].join(' ')), facts]
}

const to =
  (...addresses: string[]): EndpointOptions['resolve'] & object =>
  () =>
    Promise.resolve(addresses)

test('the server of the cluster, by its address and by its name', async () => {
  const facts = { cluster: uid, server: expect.stringMatching(/^v1\.\d+/) as string }
  expect(await ask()).toEqual([[], facts])
  // whose the addresses of a name are the operator knows
  expect(await ask({ host: NAME, resolve: to(SERVER, `::ffff:${SERVER}`) })).toEqual([[], { ...facts, addresses: SERVER }])
})

test('a port where no process listens, and a name that does not resolve', async () => {
  expect(await ask({ port: 1 })).toEqual([['endpoint-refused 127.0.0.1:1'], {}])
  const [findings] = await ask({ host: 'no-such-server.invalid' })
  expect(findings).toEqual([expect.stringMatching(/^endpoint-unresolved no-such-server\.invalid .*(ENOTFOUND|EAI_AGAIN)/)])
  expect(await ask({ host: NAME, resolve: to() })).toEqual([['endpoint-unresolved kubernetes it has no address'], {}])
})

test('the address of the service, however it is written', async () => {
  expect(await ask({ host: '10.96.0.1' })).toEqual([['endpoint-service 10.96.0.1 10.96.0.1'], {}])
  expect(await ask({ host: 'fd96:0::1' })).toEqual([['endpoint-service fd96:0::1 fd96:0::1'], {}])
  expect(await ask({ host: NAME, resolve: to('10.96.0.1') })).toEqual([['endpoint-service kubernetes 10.96.0.1'], {}])
  expect(await ask({ host: '[fd00::1]' })).toEqual([['endpoint-brackets [fd00::1]'], {}])
})

test('each address of a name is asked, and each that fails is told', async () => {
  await using silent = await Relay.start('127.0.0.2', PORT)
  await using both = new AsyncDisposableStack()
  both.use(await Relay.start('127.0.0.3', PORT, SERVER))
  // all at once
  await withinBestOfThree(10_000, async () => {
    const started = performance.now()
    const [findings, facts] = await ask({ host: NAME, resolve: to('127.0.0.2', '127.0.0.3', SERVER, '127.0.0.4') })
    expect(findings).toEqual([`endpoint-timeout 127.0.0.2:${PORT} 4000`, `endpoint-refused 127.0.0.4:${PORT}`])
    expect(facts).toMatchObject({ cluster: uid, addresses: `${SERVER},127.0.0.2,127.0.0.3,127.0.0.4` })
    return performance.now() - started
  })
  expect(silent.connections).toBeGreaterThan(0)
})

test('an address that the name has only the second time is asked as well', async () => {
  let times = 0
  const resolve = (): Promise<readonly string[]> => Promise.resolve(times++ === 0 ? [SERVER] : [SERVER, '127.0.0.4'])
  expect((await ask({ host: NAME, resolve }))[0]).toEqual([`endpoint-refused 127.0.0.4:${PORT}`])
})

test('a certificate of another authority, and one for other names', async () => {
  mkdirSync(join(folder, 'other'))
  const other = await Authority.make(join(folder, 'other'))
  const { certificate, key } = await other.issue('server', '/CN=server', ['DNS:kubernetes', 'IP:127.0.0.5'])
  await using servers = new AsyncDisposableStack()
  servers.use(await serving('127.0.0.5', { certificate, key }))
  const [findings] = await ask({ host: '127.0.0.5' })
  expect(findings).toEqual([expect.stringMatching(/^endpoint-certificate 127\.0\.0\.5:6443 .*(certificate|issuer)/)])
  const [named] = await ask({ host: 'api.example.com', resolve: to(SERVER) })
  expect(named).toEqual([expect.stringMatching(/^endpoint-certificate 127\.0\.0\.1:6443 .*altnames/)])
})

test('a token that the server does not know', async () => {
  const stranger = join(folder, 'stranger')
  mkdirSync(stranger)
  copyFileSync(cluster.authority, join(stranger, 'ca.crt'))
  writeFileSync(join(stranger, 'token'), 'of-another-cluster')
  expect(await ask({ account: stranger })).toEqual([[`endpoint-token ${SERVER}:${PORT}`], {}])
})

test('what proves itself by the same authority, and is another cluster', async () => {
  const own = { certificate: cluster.authority, key: join(folder, 'cluster/certificates/apiserver.key') }
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'of-another' } }
  await using servers = new AsyncDisposableStack()
  servers.use(await serving('127.0.0.6', own, JSON.stringify(body)))
  const [findings, facts] = await ask({ host: NAME, resolve: to(SERVER, '127.0.0.6') })
  expect(findings).toEqual([`endpoint-other-cluster 127.0.0.6:${PORT} of-another ${uid}`])
  expect(facts).toMatchObject({ cluster: uid })
})

test('what is no API server', async () => {
  const own = { certificate: cluster.authority, key: join(folder, 'cluster/certificates/apiserver.key') }
  await using servers = new AsyncDisposableStack()
  servers.use(await serving('127.0.0.7', own, '<html>'))
  const [findings] = await ask({ host: NAME, resolve: to('127.0.0.7') })
  expect(findings).toEqual([expect.stringMatching(/^endpoint-answer 127\.0\.0\.7:6443 /)])
})

test('the account may read the one namespace and nothing else', async () => {
  const token = readFileSync(join(account, 'token'), 'utf8')
  await using own = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig({ token })) })
  await expect(own.get({ apiVersion: 'v1', kind: 'Namespace', name: 'default' })).rejects.toMatchObject({ reason: 'Forbidden' })
  await expect(own.list({ apiVersion: 'v1', kind: 'Node' })).rejects.toMatchObject({ reason: 'Forbidden' })
})

/** A server of HTTPS that says one thing. */
async function serving(
  address: string,
  files: { readonly certificate: string; readonly key: string },
  body = '{}',
): Promise<Server & AsyncDisposable> {
  const options = { cert: readFileSync(files.certificate), key: readFileSync(files.key) }
  const server = createServer(options, (_, response) => response.setHeader('content-type', 'application/json').end(body))
  server.listen(PORT, address)
  await once(server, 'listening')
  return server
}
