// SPDX-License-Identifier: Apache-2.0
/** A DaemonSet that another client has applied rolls to this version as the same object, with nothing of the old one
 * left, by a real API server with its controllers. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderInstallation } from '#lib/render/render.ts'
import { rollOf } from '#upgrade/steps/roll.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { TestKubelets } from '../../../testkit/kubernetes/kubelets/test-kubelets.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'

const BUILD_MS = 30 * 60_000
const ROLL_MS = 60_000
const NODES = ['a', 'b', 'c', 'd', 'e']
const LABEL = { 'k8s-app': 'netplane-node' }
const OLD = asApiObject({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { namespace: 'kube-system', name: 'netplane-node', labels: LABEL, annotations: { team: 'net' } },
  spec: {
    selector: { matchLabels: LABEL },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
    template: {
      metadata: { labels: LABEL },
      spec: {
        hostNetwork: true,
        tolerations: [{ operator: 'Exists' }],
        initContainers: [{ name: 'upgrade-ipam', image: 'netplane/cni:v3.27.0' }],
        containers: [
          { name: 'netplane-node', image: 'netplane/node:v3.27.0', env: [{ name: 'FELIX_LOGSEVERITYSCREEN', value: 'Debug' }] },
          { name: 'metrics', image: 'metrics:1' },
        ],
        volumes: [{ name: 'lib-modules', hostPath: { path: '/lib/modules' } }],
      },
    },
  },
})

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let kubelets: TestKubelets

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-roll-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster'), controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  kubelets = new TestKubelets({ client, startMs: 300 })
  await kubelets.add(NODES)
  await client.create(OLD, { fieldManager: 'kubectl-create' })
}, BUILD_MS)

afterAll(async () => {
  await kubelets[Symbol.asyncDispose]()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function target(version: string): readonly ApiObject[] {
  const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: true, installed: 'Standard' })
  return renderInstallation({ namespace: 'kube-system', image: `netplane:${version}`, computed, endpoint: undefined })
}

function roll(version: string, timeoutMs = ROLL_MS): ReturnType<typeof rollOf> {
  return rollOf({ client, clock: systemClock, manager: 'netplanectl', objects: target(version), timeoutMs })
}

const signal = new AbortController().signal
const daemonSet = async (): Promise<ApiObject> => await client.get(namedOf(OLD))
const namesAt = (object: unknown, path: string): readonly unknown[] => listAt(object, path).map((one) => textAt(one, 'name'))

async function everywhere(): Promise<void> {
  const available = async (): Promise<unknown> => numberAt(await daemonSet(), 'status.numberAvailable')
  await expect.poll(available, { timeout: 60_000, interval: 100 }).toBe(NODES.length)
}

/** As low as it went, until the promise ends. */
async function leastAvailable(until: Promise<unknown>): Promise<number> {
  const counts: number[] = []
  const ended = until.then(
    () => true,
    () => true,
  )
  do counts.push(numberAt(await daemonSet(), 'status.numberAvailable') ?? 0)
  while (!(await Promise.race([ended, systemClock.sleep(20, signal).then(() => false)])))
  return Math.min(...counts)
}

test('the same object rolls a node at a time, with its selector, and nothing of the old pods is left', async () => {
  await everywhere()
  const before = await daemonSet()
  const step = roll('3.31.5')
  expect(await step.look(signal)).toMatchObject({ isDone: false, problems: [] })
  const told: string[] = []
  const rolled = step.run(signal, (text) => told.push(text))
  const least = await leastAvailable(rolled)
  await rolled
  expect(await step.look(signal)).toEqual({ isDone: true, problems: [], left: [] })
  expect(least).toBe(NODES.length - 1)
  expect(told.some((text) => text.includes(`of ${NODES.length} pods are of the newest version`))).toBe(true)
  const after = await daemonSet()
  expect(after.metadata.uid).toBe(before.metadata.uid)
  expect(textAt(after, 'spec.selector.matchLabels.k8s-app')).toBe('netplane-node')
  expect(namesAt(after, 'spec.template.spec.containers')).toEqual(['netplane-node', 'datastore'])
  expect(namesAt(after, 'spec.template.spec.initContainers')).toEqual(['mounts'])
  expect(namesAt(after, 'spec.template.spec.volumes')).not.toContain('lib-modules')
  expect(JSON.stringify(after['spec'])).not.toContain('FELIX_LOGSEVERITYSCREEN')
  expect(after.metadata.annotations).toMatchObject({ team: 'net' })
}, 120_000)

test('a roll that is over writes nothing, and settings of a workload of this version stay', async () => {
  await client.patch(namedOf(OLD), { spec: { template: { spec: { terminationGracePeriodSeconds: 20 } } } }, { type: 'merge' })
  await expect.poll(async () => (await roll('3.31.5').look(signal)).isDone, { timeout: 60_000 }).toBe(true)
  const { resourceVersion } = (await daemonSet()).metadata
  await roll('3.31.5').run(signal, () => undefined)
  expect((await daemonSet()).metadata.resourceVersion).toBe(resourceVersion)
}, 120_000)

test('one that is cut off after each object ends as one that is not', async () => {
  for (let tries = 0; tries < 100 && !(await roll('3.31.6').look(signal)).isDone; tries++) {
    const cut = new AbortController()
    setTimeout(
      () => {
        cut.abort()
      },
      50 + tries * 20,
    )
    await roll('3.31.6')
      .run(cut.signal, () => undefined)
      .catch(() => undefined)
  }
  expect(await roll('3.31.6').look(signal)).toEqual({ isDone: true, problems: [], left: [] })
  expect(textAt(listAt(await daemonSet(), 'spec.template.spec.containers')[0], 'image')).toBe('netplane:3.31.6')
}, 120_000)

test('a role that a version before has applied by the same name is written anew', async () => {
  const role = target('3.31.6').find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'netplane-node')
  if (role === undefined) throw new Error('no role')
  await client.apply({ ...role, rules: [] }, { fieldManager: 'netplanectl', force: true })
  expect((await roll('3.31.6').look(signal)).left).toEqual(['ClusterRole netplane-node is not of this version'])
  await roll('3.31.6').run(signal, () => undefined)
  expect(await roll('3.31.6').look(signal)).toEqual({ isDone: true, problems: [], left: [] })
  expect((await client.get(namedOf(role)))['rules']).toEqual(role['rules'])
}, 60_000)
