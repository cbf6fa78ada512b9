// SPDX-License-Identifier: Apache-2.0
/** What a cluster lives through: its API server killed and moved, agents killed, a node that goes and comes back. Layer: test. */
import { expect, test } from 'vitest'
import { listAt, numberAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { Cluster } from '../kubernetes/cluster.ts'
import { startAgent, stopAgent } from './agents.ts'
import { Asking } from './asking.ts'
import { Namespace } from './namespaces.ts'
import { ask, HTTP_PORT, podManifest, runPods, urlOf, type RunningPod } from './pods.ts'
import { CLUSTER } from './setup.ts'

const cluster = await Cluster.open(CLUSTER)
const LABELS = { app: 'web' }
const [first] = cluster.lab.topology.nodes
const address = first?.addresses[0]?.split('/')[0] ?? ''

/** A pod on each node behind a node port. */
async function makeWeb(namespace: string): Promise<{ readonly pods: readonly RunningPod[]; readonly url: string }> {
  const spec = { type: 'NodePort', selector: LABELS, ports: [{ port: 80, targetPort: HTTP_PORT }] }
  await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'web' }, spec })
  const pods = await runPods(cluster, namespace, [
    { name: 'web-a', node: 'a', labels: LABELS },
    { name: 'web-b', node: 'b', labels: LABELS },
  ])
  const service = await cluster.get('service', 'web', '-n', namespace)
  return { pods, url: urlOf(address, numberAt(listAt(service, 'spec.ports')[0], 'nodePort') ?? 0) }
}

/** Until this pod answers too: the agents have heard of it. */
async function joins(asking: Asking, name: string): Promise<void> {
  const came = await waitFor(() => ((asking.answers.get(name) ?? 0) > 0 ? true : undefined), { timeoutMs: 60_000 })
  if (came !== true) throw new Error(`${name} never answered, but ${[...asking.answers.keys()].join(', ')}`)
}

test('an API server that is killed is not missed, and what changes after it is back is followed', async () => {
  await using namespace = await Namespace.make(cluster, 'killed')
  const { url } = await makeWeb(namespace.name)
  await using asking = new Asking(cluster, 'client', url)
  await asking.more(20)
  await cluster.plane.stopServer('SIGKILL')
  await asking.more(100)
  await cluster.plane.startServer()
  await runPods(cluster, namespace.name, [{ name: 'web-c', node: 'b', labels: LABELS }])
  await joins(asking, 'web-c')
  expect(asking.lost).toBe(0)
})

test('an API server that moves to another address is found there', async () => {
  await using namespace = await Namespace.make(cluster, 'moved')
  const { url } = await makeWeb(namespace.name)
  await using asking = new Asking(cluster, 'client', url)
  await asking.more(20)
  await cluster.moveServer()
  await runPods(cluster, namespace.name, [{ name: 'web-c', node: 'b', labels: LABELS }])
  await joins(asking, 'web-c')
  expect(asking.lost).toBe(0)
})

test('an agent that is killed is not missed by who is there, and a pod that comes meanwhile waits for the next one', async () => {
  await using namespace = await Namespace.make(cluster, 'agents')
  const { url, pods } = await makeWeb(namespace.name)
  await using asking = new Asking(cluster, 'client', url)
  await asking.more(20)
  await stopAgent(cluster, 'a', 'SIGKILL')
  try {
    await cluster.apply(podManifest(namespace.name, { name: 'late', node: 'a' }))
    await asking.more(60)
    expect(textAt(await cluster.get('pod', 'late', '-n', namespace.name), 'status.phase')).toBe('Pending')
  } finally {
    await startAgent(cluster, 'a')
  }
  const [late] = await runPods(cluster, namespace.name, [{ name: 'late', node: 'a' }])
  for (const to of pods[1]?.addresses ?? []) expect(late && (await ask(cluster, late, urlOf(to, HTTP_PORT)))).toBe('web-b')
  expect(asking.lost).toBe(0)
})

test('a node that loses its power comes back with a network', async () => {
  await using namespace = await Namespace.make(cluster, 'power')
  await cluster.cutPower('b')
  await cluster.kubectl(['delete', 'node', 'b'])
  await cluster.boot('b')
  await startAgent(cluster, 'b')
  await cluster.nodesReady(120_000)
  const [here, there] = await runPods(cluster, namespace.name, [
    { name: 'here', node: 'a' },
    { name: 'there', node: 'b' },
  ])
  for (const to of there?.addresses ?? []) expect(here && (await ask(cluster, here, urlOf(to, HTTP_PORT)))).toBe('there')
})
