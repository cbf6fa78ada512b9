// SPDX-License-Identifier: Apache-2.0
/** The step that gives flannel a DaemonSet of its own, before a real API server with real controllers. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { FLANNEL, splitFlannel } from '#upgrade/flannel/split.ts'
import { flannelStep } from '#upgrade/flannel/step.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { CANAL, CANAL_CONFIG } from '../../upgrade/flannel/canal.ts'

const BUILD_MS = 30 * 60_000
const NODES = ['a', 'b']
const DAEMON_SET = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: FLANNEL }

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-flannel-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster'), controllers: true })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const name of NODES)
    await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/os': 'linux' } } }))
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** As the kubelet of its node would say it. */
async function makeReady(): Promise<void> {
  const pods = await client.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' })
  const since = new Date().toISOString()
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: since }] }
  for (const pod of pods.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === FLANNEL))
    await client.patch(namedOf(pod), { status }, { type: 'merge', subresource: 'status' })
}

function specsOf(objects: readonly ApiObject[]): Promise<readonly unknown[]> {
  return Promise.all(objects.map(async (object) => fieldsOf((await client.get(namedOf(object)))['spec'] ?? {})))
}

test('the server takes every object as it is, and the step is done once flannel is ready on every node', async () => {
  const step = flannelStep({ client, clock: systemClock, daemonSet: CANAL, configMap: CANAL_CONFIG })
  const signal = AbortSignal.timeout(120_000)
  for (const object of splitFlannel(CANAL, CANAL_CONFIG)) await client.apply(object, { strict: true, dryRun: true })
  expect(await step.look(signal)).toEqual({ isDone: false, problems: [] })

  // cut off while it waits
  const cut = new AbortController()
  const first = step.run(AbortSignal.any([cut.signal, signal]), () => undefined)
  const settled = first.catch((thrown: unknown) => thrown)
  const waits = async (): Promise<true | undefined> => {
    const { left = [] } = await step.look(signal)
    return left[0] === `flannel of its own runs on 0 of ${NODES.length} nodes` ? true : undefined
  }
  expect(await waitFor(waits, { timeoutMs: 60_000, everyMs: 200 })).toBe(true)
  cut.abort(new Error('cut off'))
  expect(await settled).toEqual(new Error('cut off'))

  const before = await specsOf(splitFlannel(CANAL, CANAL_CONFIG))
  const told: string[] = []
  const second = step.run(signal, (text) => told.push(text))
  await makeReady()
  await second
  expect(told.at(-1)).toBe('flannel of its own runs on 2 of 2 nodes')
  expect(await step.look(signal)).toEqual({ isDone: true, problems: [] })
  // the second time nothing was another
  expect(await specsOf(splitFlannel(CANAL, CANAL_CONFIG))).toEqual(before)
}, 180_000)

test("a DaemonSet of the name that is another program's is in the way", async () => {
  await client.delete(DAEMON_SET, { propagationPolicy: 'Background' })
  const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'x', image: 'x' }] } }
  const { apiVersion, kind, ...metadata } = DAEMON_SET
  await client.create(asApiObject({ apiVersion, kind, metadata, spec: { selector: { matchLabels: { app: 'x' } }, template } }))
  const step = flannelStep({ client, clock: systemClock, daemonSet: CANAL, configMap: CANAL_CONFIG })
  expect(await step.look(AbortSignal.timeout(30_000))).toEqual({
    isDone: false,
    problems: [`DaemonSet kube-system/${FLANNEL} is there already, and selects other pods`],
  })
})
