// SPDX-License-Identifier: Apache-2.0
/** What a cluster lives through: its API server killed and moved, agents killed, a node that goes and comes back.
 * Layer: test. */
import { expect, test } from 'vitest'
import { textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { startAgent, stopAgent } from '../../testkit/kubernetes/agents.ts'
import { Asking } from './asking.ts'
import { Namespace } from './namespaces.ts'
import { addressesOf, ask, heldBy, HTTP_PORT, podManifest, runPods, urlOf } from './pods.ts'
import { sharedCluster } from './setup.ts'
import { makeWeb, WEB_LABELS } from './web.ts'

const cluster = await sharedCluster()
/** Until this pod answers too: the agents have heard of it. */
async function joins(asking: Asking, name: string): Promise<void> {
  const came = await waitFor(() => ((asking.answers.get(name) ?? 0) > 0 ? true : undefined), { timeoutMs: 60_000 })
  if (came !== true) throw new Error(`${name} never answered, but ${[...asking.answers.keys()].join(', ')}`)
}

test('an API server that is killed is not missed, and what changes after it is back is followed', async () => {
  await using namespace = await Namespace.make(cluster, 'killed')
  const { url } = await makeWeb(cluster, namespace.name)
  await using asking = new Asking(cluster.lab, 'client', url)
  await asking.more(20)
  await cluster.plane.stopServer('SIGKILL')
  await asking.more(100)
  await cluster.plane.startServer()
  await runPods(cluster, namespace.name, [{ name: 'web-c', node: 'b', labels: WEB_LABELS }])
  await joins(asking, 'web-c')
  expect(asking.lost).toEqual([])
})

test('an API server that moves to another address is found there', async () => {
  await using namespace = await Namespace.make(cluster, 'moved')
  const { url } = await makeWeb(cluster, namespace.name)
  await using asking = new Asking(cluster.lab, 'client', url)
  await asking.more(20)
  await cluster.moveServer()
  await runPods(cluster, namespace.name, [{ name: 'web-c', node: 'b', labels: WEB_LABELS }])
  await joins(asking, 'web-c')
  expect(asking.lost).toEqual([])
})

test('pods that are there do not miss an agent that is killed, and a pod that comes meanwhile waits for the next one', async () => {
  await using namespace = await Namespace.make(cluster, 'agents')
  const { url, pods } = await makeWeb(cluster, namespace.name)
  await using asking = new Asking(cluster.lab, 'client', url)
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
  for (const to of addressesOf(pods[1])) expect(late && (await ask(cluster, late, urlOf(to, HTTP_PORT)))).toBe('web-b')
  expect(asking.lost).toEqual([])
})

test('a node that loses its power and is deleted comes back with a network; the other does not miss it, and no address is kept', async () => {
  await using namespace = await Namespace.make(cluster, 'power')
  const { url } = await makeWeb(cluster, namespace.name, ['a'])
  await runPods(cluster, namespace.name, [{ name: 'before', node: 'b' }])
  await using asking = new Asking(cluster.lab, 'client', url)
  await asking.more(20)
  await cluster.cutPower('b')
  await cluster.kubectl(['delete', 'node', 'b'])
  await asking.more(60)
  // nor is there a NodeNetwork of it
  const said = async () => (await cluster.kubectl(['get', 'nodenetworks', '-o', 'name'])).trim().split('\n')
  await expect.poll(said, { timeout: 60_000, interval: 500 }).not.toContain('nodenetwork.netplane.io/b')
  await cluster.boot('b')
  await startAgent(cluster, 'b')
  await cluster.nodesReady(120_000)
  const [here, there] = await runPods(cluster, namespace.name, [
    { name: 'here', node: 'a' },
    { name: 'there', node: 'b' },
  ])
  for (const to of addressesOf(there)) expect(here && (await ask(cluster, here, urlOf(to, HTTP_PORT)))).toBe('there')
  expect(asking.lost).toEqual([])
  await cluster.kubectl(['delete', 'pod', 'before', '-n', namespace.name, '--ignore-not-found'])
  // of both families: web-a, here, there
  await expect.poll(() => heldBy(cluster, namespace.name), { timeout: 60_000, interval: 500 }).toBe(6)
})
