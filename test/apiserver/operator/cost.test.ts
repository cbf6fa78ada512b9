// SPDX-License-Identifier: Apache-2.0
/** What the operator takes of a machine and of the API server while fifty nodes want nothing, how soon it does what is
 * asked, and what it takes where all is there when it starts. Layer: test. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { ChildProcess } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { Random } from '../../../soak/random.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { TestAgents } from '../../../testkit/kubernetes/kubelets/test-agents.ts'
import { TestKubelets } from '../../../testkit/kubernetes/kubelets/test-kubelets.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { put } from '../definitions.ts'
import { found, tokenOf } from '../objects.ts'
import { startOperator, stopProcess } from '../run.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { SEED } from '../../support/steady/seed.ts'

const BUILD_MS = 30 * 60_000
const OPERATOR = 'netplane-operator'
const ACCOUNT: Named = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: OPERATOR, name: OPERATOR }
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }
const STATUS: Named = { ...INSTALLATION, kind: 'NetplaneStatus', name: 'network' }
const LEASE: Named = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: OPERATOR, name: OPERATOR }
const NODES = Array.from({ length: Number(process.env['NODES'] ?? 50) }, (_, index) => `n${index + 1}`)
/** As kubelets have it. */
const HEARTBEAT_MS = 300_000
/** Nobody is to be missed because the machine is slow: nodes that are called silent are told of, as they should be. */
const SILENCE_SECONDS = 600
const IMAGES = 50

/** In all: `make soak FORM=lifecycle` looks for ten minutes. */
const IDLE_MS = Number(process.env['IDLE_SECONDS'] ?? 90) * 1000
/** The Deployment asks for as much memory. */
const MOST_MB = 110
const MOST_OF_A_CORE = 0.005
/** What runs beside it adds to a span's time and never takes from it: the least of so many counts. */
const SPANS = 3
const SOON_MS = 2000
const CHANGES = 5
/** The last status is told of by then. */
const SETTLED_MS = 10_000
/** It has read all by then, and passed over it. */
const BEGUN_MS = 30_000

/** of all moments */
const random = new Random(SEED)

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let kubelets: TestKubelets
let agents: TestAgents
let operator: ChildProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-cost-'))
  cluster = await LoopbackCluster.start({
    programs: await kubernetesPrograms(),
    folder,
    controllers: true,
    silenceSeconds: SILENCE_SECONDS,
    audit: true,
  })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const file of ['operator-crds.yaml', 'netplane-operator.yaml'])
    for (const object of loadAll(readFileSync(join(packageRoot(), 'deploy/operator', file), 'utf8')).map(asApiObject))
      if (object.kind !== 'Deployment') await put(client, object)
  const data = { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' }
  await put(client, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: OPERATOR, name: 'cluster-services-endpoint' }, data })
  kubelets = new TestKubelets({ client, startMs: 200, heartbeatMs: HEARTBEAT_MS })
  operator = start(await tokenOf(client, ACCOUNT))
  const spec = {
    netplaneNetwork: { linuxDataplane: 'BPF', ipPools: [{ cidr: '10.28.0.0/16' }] },
    nodeUpdateStrategy: { maxUnavailable: '100%' },
  }
  await put(client, { ...INSTALLATION, metadata: { name: 'default' }, spec })
  // nodes without machines cannot be looked at: they come once the preflight has passed
  await waitFor(() => found(client, AGENTS), { timeoutMs: 30_000, everyMs: 50 })
  await kubelets.add(NODES)
  const images = Array.from({ length: IMAGES }, (_, index) => ({ names: imageNames(index), sizeBytes: 50_000_000 + index }))
  for (const name of NODES)
    await client.patch({ apiVersion: 'v1', kind: 'Node', name }, { status: { images } }, { type: 'merge', subresource: 'status' })
  agents = new TestAgents({ client, nodes: () => NODES, isProxyExpected: () => false, delayMs: 100, random: () => random.next() })
}, BUILD_MS)

/** By digest and by tag. */
function imageNames(index: number): readonly string[] {
  const name = `registry.example.com/team-${index % 7}/application-${index}`
  return [`${name}@sha256:${createHash('sha256').update(name).digest('hex')}`, `${name}:v1.${index}.0`]
}

function start(token: string): ChildProcess {
  return startOperator(cluster.kubeconfig({ token }), join(folder, 'operator.log'))
}

afterAll(async () => {
  await stopProcess(operator)
  await agents[Symbol.asyncDispose]()
  await kubelets[Symbol.asyncDispose]()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Nothing is waited for. */
async function isAvailable(): Promise<void> {
  for (const name of ['network', 'services']) {
    const standing = async (): Promise<unknown> =>
      listAt(await found(client, { ...STATUS, name }), 'status.conditions').map((one) => `${textAt(one, 'type')} ${textAt(one, 'status')}`)
    await expect.poll(standing, { timeout: 60_000, interval: 100 }).toEqual(['Available True', 'Progressing False', 'Degraded False'])
  }
}

/** Every node is Ready, and so is its agent: what is written is no answer to one that is not. */
async function isQuiet(): Promise<void> {
  const all = await client.list({ apiVersion: 'v1', kind: 'Node' })
  const isReady = (node: unknown): boolean =>
    listAt(node, 'status.conditions').some((one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'True')
  expect(all.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name)).toEqual([])
  expect(numberAt(await client.get(AGENTS), 'status.numberAvailable')).toBe(NODES.length)
}

/** CPU time of all threads so far, and memory at the moment. */
function costs(): { readonly seconds: number; readonly megabytes: number } {
  const folderOf = `/proc/${operator?.pid ?? 0}`
  const nanoseconds = readdirSync(`${folderOf}/task`).map((thread) =>
    Number(readFileSync(`${folderOf}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`${folderOf}/status`, 'utf8')) ?? []
  return { seconds: nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9, megabytes: Number(kilobytes) / 1024 }
}

/** What the operator has written since then, but for its Lease. */
function writesSince(wall: number): readonly string[] {
  return readFileSync(join(folder, 'audit.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes(`system:serviceaccount:${OPERATOR}:${OPERATOR}`))
    .map((line): unknown => JSON.parse(line))
    .filter((event) => Date.parse(textAt(event, 'requestReceivedTimestamp') ?? '') >= wall)
    .flatMap((event) => {
      const [verb = '', resource = ''] = [textAt(event, 'verb'), textAt(event, 'objectRef.resource')]
      return ['get', 'list', 'watch'].includes(verb) || resource === 'leases' ? [] : [`${verb} ${resource}`]
    })
}

test(
  'while nothing changes it writes nothing, and takes little',
  async () => {
    const ready = async (): Promise<unknown> => numberAt(await client.get(AGENTS), 'status.numberAvailable')
    await expect.poll(ready, { timeout: 60_000, interval: 100 }).toBe(NODES.length)
    await isAvailable()
    await sleep(SETTLED_MS)
    const wall = Date.now()
    const cores: number[] = []
    for (let span = 0; span < SPANS; span++) {
      const before = costs()
      await sleep(IDLE_MS / SPANS)
      cores.push(((costs().seconds - before.seconds) * 1000 * SPANS) / IDLE_MS)
    }
    const { megabytes } = costs()
    console.log(`${cores.map((core) => `${(core * 100).toFixed(2)} %`).join(', ')} of a core, ${megabytes.toFixed(0)} MB`)
    await isQuiet()
    expect(writesSince(wall)).toEqual([])
    expect(Math.min(...cores)).toBeLessThanOrEqual(MOST_OF_A_CORE)
    expect(megabytes).toBeLessThanOrEqual(MOST_MB)
  },
  IDLE_MS + 120_000,
)

test('what is changed of the Installation is in the objects soon', async () => {
  const took: number[] = []
  const wall = Date.now()
  const change = async (): Promise<number> => {
    const round = String(took.length + 1)
    const start = performance.now()
    await client.patch(INSTALLATION, { spec: { nodePods: { annotations: { round } } } }, { type: 'merge' })
    const at = async (): Promise<unknown> => textAt(await client.get(AGENTS), 'spec.template.metadata.annotations.round')
    await expect.poll(at, { interval: 10 }).toBe(round)
    const ms = performance.now() - start
    took.push(ms)
    await isAvailable()
    return ms
  }
  for (let round = 0; round < CHANGES; round++) await withinBestOfThree(SOON_MS, change)
  console.log(`from a change to the object: ${took.map((ms) => `${ms.toFixed(0)} ms`).join(', ')}`)
  expect(writesSince(wall).filter((write) => write === 'patch daemonsets')).toHaveLength(took.length)
}, 240_000)

test('one that starts where all is there takes no more, and writes nothing', async () => {
  await sleep(SETTLED_MS)
  const wall = Date.now()
  await stopProcess(operator)
  operator = start(await tokenOf(client, ACCOUNT))
  await sleep(BEGUN_MS)
  const { seconds, megabytes } = costs()
  console.log(`begun anew: ${megabytes.toFixed(0)} MB, ${seconds.toFixed(1)} s`)
  expect(Date.parse(textAt(await client.get(LEASE), 'spec.acquireTime') ?? '')).toBeGreaterThanOrEqual(wall)
  await isQuiet()
  // its definitions it puts, which changes none
  expect(writesSince(wall).filter((write) => write !== 'update customresourcedefinitions')).toEqual([])
  expect(megabytes).toBeLessThanOrEqual(MOST_MB)
}, 120_000)
