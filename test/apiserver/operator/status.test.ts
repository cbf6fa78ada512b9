// SPDX-License-Identifier: Apache-2.0
/** What the operator says while real controllers and a scheduler have twelve nodes, whose pods do as they are told.
 * Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { listAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { nodeObject } from '../../../testkit/kubernetes/kubelets/fates.ts'
import { TestKubelets } from '../../../testkit/kubernetes/kubelets/test-kubelets.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { put } from '../definitions.ts'
import { startOperator, stopProcess } from '../run.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeout: 30_000, interval: 100 }
const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }
const AGENTS: Named = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'netplane-system', name: 'netplane-node' }
const STATUS: Named = { ...INSTALLATION, kind: 'NetplaneStatus', name: 'network' }
const MOST_UNAVAILABLE = 4

const nodes = Array.from({ length: 12 }, (_, index) => `n${String(index + 1).padStart(2, '0')}`)

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let kubelets: TestKubelets
let operator: ChildProcess
/** of agents' pods at a time, at the least, since it was set */
let fewestReady = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-operator-status-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder, controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  const onPods = (pods: readonly ApiObject[]): void => {
    fewestReady = Math.min(fewestReady, agentsOf(pods).filter(isReady).length)
  }
  kubelets = new TestKubelets({ client, startMs: 200, onPods })
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-operator' } }))
  await put(client, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'netplane-operator', name: 'cluster-services-endpoint' },
    data: { CLUSTER_SERVICE_HOST: 'api.internal', CLUSTER_SERVICE_PORT: '6443' },
  })
  operator = startOperator(cluster.kubeconfig(), join(folder, 'operator.log'))
  const spec = { netplaneNetwork: { linuxDataplane: 'BPF' }, nodeUpdateStrategy: { maxUnavailable: MOST_UNAVAILABLE } }
  await put(client, { ...INSTALLATION, metadata: { name: 'default' }, spec })
  // nodes without machines cannot be looked at: they come once the preflight has passed
  await waitFor(() => client.get(AGENTS).catch(() => undefined), { timeoutMs: 30_000, everyMs: 50 })
  await kubelets.add(nodes)
}, BUILD_MS)

afterAll(async () => {
  await stopProcess(operator)
  await kubelets[Symbol.asyncDispose]()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Beside them is the pod of the controllers. */
function agentsOf(pods: readonly ApiObject[]): readonly ApiObject[] {
  return pods.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === AGENTS.name)
}

function isReady(pod: ApiObject): boolean {
  return listAt(pod, 'status.conditions').some((one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'True')
}

/** "Available True AllReady: all of it is in place" */
async function said(type: 'Available' | 'Progressing' | 'Degraded', of = STATUS): Promise<string> {
  const status = await client.get(of).catch(() => undefined)
  const found = listAt(status, 'status.conditions').find((one) => textAt(one, 'type') === type)
  return ['status', 'reason', 'message'].map((key) => textAt(found, key) ?? '').join(' ')
}

const isAvailable = (): Promise<void> => expect.poll(() => said('Available'), SOON).toBe('True AllReady all of it is in place')

/** The agents' pods are other ones by it. */
async function rollOut(version: string): Promise<void> {
  await client.patch(INSTALLATION, { spec: { nodePods: { annotations: { version } } } }, { type: 'merge' })
}

test('twelve nodes are Available once the agent of each is ready', async () => {
  // the first nodes may be ready before the last ones are there
  await expect.poll(() => agentsOf(kubelets.pods).length, SOON).toBe(nodes.length)
  await expect.poll(() => said('Progressing'), SOON).toMatch(/^False/)
  await isAvailable()
  expect(await said('Degraded')).toMatch(/^False/)
})

test('the controllers have a status of their own', async () => {
  const controllers = { ...STATUS, name: 'controllers' }
  await expect.poll(() => said('Available', controllers), SOON).toBe('True AllReady all of it is in place')
})

test('a rollout says how far it is, and never has more agents away than the Installation lets it', async () => {
  fewestReady = nodes.length
  const steps = new Set<string>()
  await rollOut('2')
  await expect.poll(async () => (await said('Progressing')).startsWith('True RollingOut'), SOON).toBe(true)
  await expect
    .poll(async () => {
      const text = await said('Progressing')
      steps.add(text)
      return text.startsWith('False')
    }, SOON)
    .toBe(true)
  await isAvailable()
  expect(fewestReady).toBeGreaterThanOrEqual(nodes.length - MOST_UNAVAILABLE)
  expect(fewestReady).toBeLessThan(nodes.length)
  expect(
    [...steps].filter((text) => /^True RollingOut \d+ of 12 pods are of the newest version, \d+ are ready/.test(text)).length,
  ).toBeGreaterThan(1)
})

test('agents that end again and again are named by their nodes, and so is why', async () => {
  kubelets.setFate(['n03', 'n07'], 'crash-loop')
  const text = 'n03, n07: netplane-node ends again and again: Error, exit code 1'
  await expect.poll(() => said('Degraded'), SOON).toBe(`True CrashLoop ${text}`)
  await expect.poll(() => said('Available'), SOON).toBe(`False CrashLoop ${text}`)
  kubelets.setFate(nodes, 'ready')
  await isAvailable()
  expect(await said('Degraded')).toMatch(/^False/)
})

test('an image that no node can pull names ten of them, and counts the others', async () => {
  kubelets.setFate(nodes, 'image-pull')
  await expect
    .poll(() => said('Degraded'), SOON)
    .toMatch(/^True ImagePull n01, n02, .*n10 and 2 more: image netplane:\S+ cannot be pulled: ImagePullBackOff$/)
  kubelets.setFate(nodes, 'ready')
  await isAvailable()
})

test('an agent that is not ready, and that of a node which is gone, are waited for by name', async () => {
  kubelets.setFate(['n02'], 'unready')
  kubelets.silence('n05')
  await expect.poll(() => said('Available'), SOON).toMatch(/^False RollingOut .* 10 are ready; not ready: n02, n05$/)
  expect(await said('Degraded')).toMatch(/^False/)
  kubelets.setFate(['n02'], 'ready')
  await kubelets.wake('n05')
  await isAvailable()
})

test('a rollout whose first agents do not come stops there, and the others stay', async () => {
  fewestReady = nodes.length
  kubelets.setFate(nodes, 'unready', 'new')
  await rollOut('3')
  await expect
    .poll(() => said('Progressing'), SOON)
    .toMatch(/^True RollingOut 4 of 12 pods are of the newest version, 8 are ready; not ready: (n\d\d(, )?){4}$/)
  await new Promise((resolve) => setTimeout(resolve, 3000))
  expect(fewestReady).toBe(nodes.length - MOST_UNAVAILABLE)
  kubelets.setFate(nodes, 'ready')
  await isAvailable()
})

test('a node that comes has its agent, and one without room is named', async () => {
  await kubelets.add(['n13'])
  await expect.poll(() => agentsOf(kubelets.pods).filter(isReady).length, SOON).toBe(13)
  await kubelets.add(['n14'], false)
  await expect
    .poll(() => said('Available'), SOON)
    .toMatch(/^False RollingOut 14 of 14 pods are of the newest version, 13 are ready; not ready: n14$/)
  const { status } = nodeObject('n14')
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n14' }, { status }, { type: 'merge', subresource: 'status' })
  await isAvailable()
  expect(agentsOf(kubelets.pods).filter(isReady)).toHaveLength(14)
})
