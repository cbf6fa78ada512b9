// SPDX-License-Identifier: Apache-2.0
/** From the agents of deploy/manifests to the operator's, by the commands of docs/operator.md. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { found } from '../objects.ts'
import { put } from '../definitions.ts'
import { run, startOperator, stopProcess } from '../run.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeoutMs: HANG_MS, everyMs: 50 }
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }
const NETWORK: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'NetplaneStatus', name: 'network' }
const POOL: Named = { apiVersion: 'netplane.io/v3', kind: 'IPPool', name: 'pods' }

let folder = ''
let programs = ''
let cluster: LoopbackCluster
let client: ApiClient
let operator: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-from-manifests-'))
  programs = await kubernetesPrograms()
  cluster = await LoopbackCluster.start({ programs, folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await stopProcess(operator)
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Again while its kind is not served yet. */
async function kubectl(args: readonly string[]): Promise<void> {
  const ended = await waitFor(async () => {
    const tried = await run(join(programs, 'kubectl'), args, { KUBECONFIG: cluster.kubeconfig(), HOME: folder })
    return tried.output.includes('no matches for kind') ? undefined : tried
  }, SOON)
  if (ended?.code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${ended?.output ?? ''}`)
}

async function apply(file: string, ...flags: readonly string[]): Promise<void> {
  await kubectl(['apply', ...flags, '-f', join(packageRoot(), 'deploy', file)])
}

/** Arguments of each line. */
function documented(): readonly (readonly string[])[] {
  const page = readFileSync(join(packageRoot(), 'docs/operator.md'), 'utf8').split('## From the manifests of agents')[1] ?? ''
  const [, block = ''] = /^```\n([^]*?)^```$/m.exec(page) ?? []
  return [...block.matchAll(/^kubectl (.*)$/gm)].map(([, line = '']) => line.split(' '))
}

test('agents of the operator come once the manifest’s are gone, and pools stay', async () => {
  await apply('manifests/netplane.yaml')
  await expect
    .poll(
      () =>
        put(client, { ...POOL, metadata: { name: POOL.name }, spec: { cidr: '10.28.0.0/16' } }).then(
          () => true,
          () => false,
        ),
      {
        timeout: 10_000,
      },
    )
    .toBe(true)
  await apply('operator/operator-crds.yaml', '--server-side')
  await apply('operator/netplane-operator.yaml', '--server-side')
  const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
  const metadata = { namespace: 'netplane-operator', name: 'cluster-services-endpoint' }
  await put(client, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  await apply('operator/custom-resources.yaml')
  operator = startOperator(cluster.kubeconfig(), join(folder, 'operator.log'))
  const degraded = async (): Promise<string | undefined> => {
    const condition = findCondition((await found(client, NETWORK)) ?? {}, 'Degraded')
    return condition?.status === 'True' ? condition.reason : condition?.status
  }
  await expect.poll(degraded).toBe('OtherInstallation')
  const lines = documented()
  expect(lines).toHaveLength(4)
  for (const line of lines) await kubectl(line)
  await expect.poll(() => found(client, AGENTS)).toBeDefined()
  await expect.poll(degraded).toBe('False')
  expect(await found(client, POOL)).toBeDefined()
}, 120_000)
