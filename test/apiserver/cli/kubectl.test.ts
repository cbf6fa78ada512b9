// SPDX-License-Identifier: Apache-2.0
/** The archive's kubectl-netplane, as a real kubectl runs it before a real API server. Layer: test. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { writeDist } from '../../../scripts/dist/main.ts'
import { define } from '../definitions.ts'

const BUILD_MS = 30 * 60_000
const TIER = JSON.stringify({ apiVersion: 'netplane.io/v3', kind: 'Tier', metadata: { name: 'security' }, spec: { order: 5 } })

let folder = ''
let bin = ''
let programs = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-kubectl-'))
  programs = await kubernetesPrograms()
  const archive = await writeDist(process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'archive'))
  execFileSync('tar', ['-C', folder, '--one-top-level=unpacked', '--strip-components=1', '-xzf', archive])
  bin = join(folder, 'unpacked/bin')
  cluster = await LoopbackCluster.start({ programs, folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, 'Tier', 'ClusterInformation')
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** A line of a shell that has the archive and kubectl, and no Node. */
function shell(line: string): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: folder, KUBECONFIG: cluster.kubeconfig() }
  return new Promise((settle) => {
    execFile('bash', ['-c', `kubectl() { ${join(programs, 'kubectl')} "$@"; }; ${line}`], { cwd: folder, env }, (error, stdout, stderr) => {
      settle({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

test('kubectl finds the plugin, and warns of nothing', async () => {
  expect(readdirSync(bin)).toContain('kubectl-netplane')
  const { code, stdout, stderr } = await shell('kubectl plugin list')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`${bin}/kubectl-netplane\n`)
})

test('verbs go to the cluster of the kubeconfig, with standard input', async () => {
  expect(await shell(`echo '${TIER}' | kubectl netplane apply -f -`)).toEqual({
    code: 0,
    stdout: "Successfully applied 1 'Tier' resource(s)\n",
    stderr: '',
  })
  expect((await shell('kubectl netplane get tier security -o name')).stdout).toBe('tier.netplane.io/security\n')
  expect((await shell('kubectl netplane version')).stdout).toContain(`Client Version:   v${packageVersion()}\n`)
})

test('exit codes come through: of an object that is not there, and of wrong arguments', async () => {
  expect(await shell('kubectl netplane get tier nothing')).toMatchObject({ code: 1, stdout: '' })
  expect(await shell('kubectl netplane get nonsense')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"nonsense" is none') as string,
  })
})

test('a flag of the plugin chooses the cluster', async () => {
  writeFileSync(join(folder, 'other'), JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [], contexts: [], users: [] }))
  expect(await shell('kubectl netplane get tiers --kubeconfig other')).toMatchObject({ code: 1, stdout: '' })
  expect(await shell(`KUBECONFIG=other kubectl netplane get tier security --kubeconfig ${cluster.kubeconfig()} -o name`)).toMatchObject({
    code: 0,
    stdout: 'tier.netplane.io/security\n',
  })
})
