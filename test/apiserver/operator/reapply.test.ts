// SPDX-License-Identifier: Apache-2.0
/** deploy/operator by kubectl, twice, beside a real operator: nothing differs, nothing is refused. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { put } from '../definitions.ts'
import { at, found } from '../objects.ts'
import { run, startOperator, stopProcess, type Ended } from '../run.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeoutMs: HANG_MS, everyMs: 50 }
const FILES = ['operator-crds.yaml', 'netplane-operator.yaml', 'custom-resources.yaml'].map((name) =>
  join(packageRoot(), 'deploy/operator', name),
)
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }
const OPERATOR: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'netplane-operator', name: 'netplane-operator' }
const DEFINITIONS = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }

let folder = ''
let programs = ''
let cluster: LoopbackCluster
let client: ApiClient
let operator: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-reapply-'))
  programs = await kubernetesPrograms()
  cluster = await LoopbackCluster.start({ programs, folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await put(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } })
  await put(client, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'netplane-operator', name: 'cluster-services-endpoint' },
    data: { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' },
  })
}, BUILD_MS)

afterAll(async () => {
  await stop()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

async function kubectl(...args: readonly string[]): Promise<Ended> {
  return await run(join(programs, 'kubectl'), args, { KUBECONFIG: cluster.kubeconfig(), HOME: folder })
}

/** All files in their order; the last is tried again until its kind is served. */
async function applyAll(...flags: readonly string[]): Promise<void> {
  for (const file of FILES) {
    let last: Ended | undefined
    await waitFor(async () => {
      last = await kubectl('apply', ...flags, '-f', file)
      return last.code === 0 || !last.output.includes('no matches for kind') ? true : undefined
    }, SOON)
    if (last?.code !== 0) throw new Error(last?.output)
  }
}

function start(): void {
  operator = startOperator(cluster.kubeconfig(), join(folder, 'operator.log'))
}

async function stop(): Promise<void> {
  await stopProcess(operator)
}

async function versions(): Promise<readonly unknown[]> {
  return (await client.list(DEFINITIONS)).map(({ metadata }) => metadata.resourceVersion)
}

const WAYS: readonly (readonly [string, readonly string[]])[] = [
  ['the server', ['--server-side']],
  ['the client', []],
]

describe.each(ofMatrix(WAYS, WAYS.slice(0, 1)))('by %s’s apply', (_, flags) => {
  const differs = async (): Promise<string> => {
    const { code, output } = await kubectl('diff', ...flags, ...FILES.flatMap((file) => ['-f', file]))
    if (code !== 0 && code !== 1) throw new Error(output)
    return output
  }
  let before: readonly unknown[] = []

  afterAll(stop)

  test('files that are applied differ from nothing, and may be applied again', async () => {
    await applyAll(...flags)
    expect(await differs()).toBe('')
    before = await versions()
    await applyAll(...flags)
    expect(await differs()).toBe('')
  })

  test('so they may while the operator runs; it writes no definition that is as it is to be, and a patched name server stays', async () => {
    start()
    await waitFor(() => found(client, AGENTS), SOON)
    expect(await found(client, AGENTS)).toBeDefined()
    expect(await versions()).toEqual(before)
    expect(await differs()).toBe('')
    const dnsConfig = { nameservers: ['169.254.169.253'] }
    const patch = JSON.stringify({ spec: { template: { spec: { dnsConfig } } } })
    expect(await kubectl('patch', 'deployment', OPERATOR.name, '-n', 'netplane-operator', '-p', patch)).toMatchObject({ code: 0 })
    await applyAll(...flags)
    expect(await differs()).toBe('')
    expect(at(await found(client, OPERATOR), 'spec', 'template', 'spec', 'dnsConfig')).toEqual(dnsConfig)
    const status = at(await found(client, { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }), 'status')
    expect(status).toBeDefined()
  })
})

test('definitions of an older version, and what another client has added to them, become this version’s', async () => {
  const name = 'installations.operator.netplane.io'
  const definition = definitionOf(name)
  const spec = (of: unknown): unknown => at(of, 'spec', 'versions', '0', 'schema', 'openAPIV3Schema', 'properties', 'spec')
  const older = structuredClone(definition)
  const rules = [{ rule: 'has(self.variant)', message: 'of an older version' }]
  Object.assign(spec(older) as object, { 'x-kubernetes-validations': rules, description: 'older' })
  Object.assign(at(spec(older), 'properties') as object, { older: { type: 'string' } })
  expect(await applied(older)).toMatchObject({ code: 0 })
  await kubectl('label', 'crd', name, 'team=net')
  start()
  const now = async (): Promise<unknown> => spec(await found(client, { ...DEFINITIONS, name }))
  await expect.poll(now).toEqual(spec(definition))
  expect(at(await found(client, { ...DEFINITIONS, name }), 'metadata', 'labels')).toEqual({ team: 'net' })
  await stop()
})

test('the next version’s definitions are taken without force after an operator of this one', async () => {
  const named: Named = { ...DEFINITIONS, name: 'netplanestatuses.operator.netplane.io' }
  await client.delete(named)
  await waitFor(async () => ((await found(client, named)) === undefined ? true : undefined), SOON)
  const definition = definitionOf(named.name)
  expect(await applied(definition)).toMatchObject({ code: 0 })
  start()
  // it comes after all definitions
  const status: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'NetplaneStatus', name: 'network' }
  await waitFor(() => found(client, status), SOON)
  expect(await found(client, status)).toBeDefined()
  await stop()
  const next = structuredClone(definition)
  Object.assign(at(next, 'spec', 'versions', '0', 'schema', 'openAPIV3Schema') as object, { description: 'next' })
  expect(await applied(next)).toMatchObject({ code: 0 })
})

function definitionOf(name: string): unknown {
  return loadAll(readFileSync(FILES[0] ?? '', 'utf8')).find((one) => at(one, 'metadata', 'name') === name)
}

/** By the server, without force. */
async function applied(object: unknown): Promise<Ended> {
  const file = join(folder, 'object.json')
  writeFileSync(file, JSON.stringify(object))
  return await kubectl('apply', '--server-side', '-f', file)
}
