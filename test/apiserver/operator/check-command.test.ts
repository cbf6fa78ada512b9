// SPDX-License-Identifier: Apache-2.0
/** `netplanectl install check` and `remove` before a real API server, as programs. Layer: test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { allDefinitions } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { FINALIZER } from '#operator/objects/finalizer.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { put } from '../definitions.ts'
import { found as foundIn } from '../objects.ts'

const BUILD_MS = 30 * 60_000
const OPERATOR = 'netplane-operator'
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const ROLE: Named = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'netplane-check' }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-check-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR } }))
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function netplanectl(
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  const child = spawn(process.execPath, [join(packageRoot(), 'dist/cli/main.js'), ...args, '--kubeconfig', cluster.kubeconfig()], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, out, err }
}

const found = (named: Named): Promise<ApiObject | undefined> => foundIn(client, named)

test('a cluster without a way to its API server is told so, before there is anything of ours', async () => {
  const { code, out } = await netplanectl('install', 'check')
  expect(out).toMatch(
    /^blocking  there is no config map netplane-operator\/cluster-services-endpoint, .*; make it: netplanectl install endpoint$/m,
  )
  expect(code).toBe(1)
})

test('nothing in the way is exit code 0', async () => {
  const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
  await put(client, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: 'cluster-services-endpoint' }, data })
  expect(await netplanectl('install', 'check')).toEqual({ code: 0, out: 'nothing is in the way\n', err: '' })
})

test('nodes that do not answer in time are named, and what asked them is gone', async () => {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { 'kubernetes.io/os': 'linux' } } }
  await client.create(asApiObject(node))
  const asked = netplanectl('install', 'check', '--timeout', '4', '--json')
  await expect.poll(() => found(ROLE)).toBeDefined()
  const { code, out } = await asked
  expect(JSON.parse(out)).toMatchObject({ passed: false, blocking: [], waiting: '0 nodes have answered; waiting for n1' })
  expect(code).toBe(1)
  for (const one of [ROLE, { ...ROLE, kind: 'ClusterRoleBinding' }]) expect(await found(one)).toBeUndefined()
  // no controller empties namespaces here
  expect((await found({ apiVersion: 'v1', kind: 'Namespace', name: 'netplane-check' }))?.metadata.deletionTimestamp).toBeDefined()
  await client.delete({ apiVersion: 'v1', kind: 'Node', name: 'n1' })
})

test('without an Installation a removal names that, and calls nothing gone', async () => {
  const out = 'there is no Installation default: nothing is removed\n'
  expect(await netplanectl('install', 'remove')).toMatchObject({ code: 0, out })
})

test('an Installation goes without an operator only where that is asked for', async () => {
  for (const definition of allDefinitions(felixSchema())) await put(client, definition)
  const { apiVersion, kind, name } = INSTALLATION
  await expect
    .poll(() =>
      put(client, { apiVersion, kind, metadata: { name, finalizers: [FINALIZER] }, spec: {} }).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  const waited = await netplanectl('install', 'remove', '--timeout', '2')
  expect(waited).toMatchObject({ code: 1, out: 'Installation default is still there after 2 s\n' })
  expect(waited.err).toContain(`finalizers ${FINALIZER}`)
  expect(waited.err).toContain('no operator is ready in netplane-operator: where none is to come, `netplanectl install remove --without')
  // as where `kubectl delete -f netplane-operator.yaml` came first
  expect(await netplanectl('install', 'remove', '--without-operator', '--namespace', 'elsewhere', '--timeout', '60')).toMatchObject({
    code: 0,
    out: 'Installation default is gone\n',
  })
  expect(await found(INSTALLATION)).toBeUndefined()
}, 90_000)
