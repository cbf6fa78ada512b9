// SPDX-License-Identifier: Apache-2.0
/** From nodes without a network to nodes that serve pods, and away again: a daemon set of our own image.
 * Layer: test. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorText } from '#lib/base/errors.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { NAME } from '../../testkit/kubernetes/manifest.ts'
import { Asking } from './asking.ts'
import { DAEMON_SET, importImage, install, OURS, rollout, takeAway } from './installed.ts'
import { Namespace } from './namespaces.ts'
import { ask, HTTP_PORT, runPods, urlOf, type RunningPod } from './pods.ts'

const OUTSIDE_PORT = 8099

/** A pod's server outside of the cluster sees the pod's node, in both families: there is no pool of addresses. */
async function expectNodesAddress(cluster: Cluster, pod: RunningPod): Promise<void> {
  const command = [join(cluster.programs, 'agnhost'), 'netexec', `--http-port=${OUTSIDE_PORT}`]
  await cluster.daemons.start('fabric', command, { name: 'outside' })
  const node = await cluster.get('node', pod.node)
  const addresses = listAt(node, 'status.addresses').flatMap((entry) => textAt(entry, 'address') ?? [])
  for (const server of cluster.lab.topology.fabric.addresses.map((address) => address.split('/')[0] ?? '')) {
    const url = urlOf(server, OUTSIDE_PORT, '/clientip')
    const seen = async (): Promise<string | undefined> => (await ask(cluster, pod, url))?.replace(/^\[?(.*?)\]?:\d+$/, '$1')
    await expect.poll(seen).toBeOneOf(addresses)
  }
}

/** What kubectl shows of the agents' pods, while the datastore is open, locked, and open again; services go on. */
async function expectReadings(cluster: Cluster, answers: () => Promise<unknown>): Promise<void> {
  const readings = async (): Promise<readonly string[]> => {
    const pods = await cluster.kubectl(['get', 'pods', '-n', OURS, '-l', `app.kubernetes.io/name=${NAME}`, '--no-headers'])
    return [
      ...new Set(
        pods
          .trim()
          .split('\n')
          .map((line) => line.split(/\s+/).slice(1, 3).join(' ')),
      ),
    ]
  }
  const put = (datastoreReady: boolean): Promise<string> =>
    cluster.kubectl([
      'patch',
      'clusterinformation',
      CLUSTER_INFORMATION.name,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { datastoreReady } }),
    ])
  const soon = { timeout: 60_000, interval: 500 }
  await expect.poll(readings, soon).toEqual(['2/2 Running'])
  await put(false)
  await expect.poll(readings, soon).toEqual(['1/2 Running'])
  expect(await answers()).toEqual(['server', 'server'])
  await put(true)
  await expect.poll(readings, soon).toEqual(['2/2 Running'])
}

test(
  'an empty cluster: nodes are Ready, pods have addresses, services and policy work, and a rollout interrupts no connection',
  async () => {
    await using cluster = await Cluster.up({ name: 'empty' })
    await importImage(cluster)
    const whyNot = (): Promise<string> => cluster.nodesReady(0).then(() => '', errorText)
    await expect.poll(whyNot, { timeout: 30_000 }).toContain('cni plugin not initialized')
    await install(cluster)
    await cluster.nodesReady()
    await using namespace = await Namespace.make(cluster, 'first')
    const { name } = namespace
    const [server, client] = await runPods(cluster, name, [
      { name: 'server', node: 'a', labels: { app: 'web' } },
      { name: 'client', node: 'b' },
    ])
    if (server === undefined || client === undefined) throw new Error('no pods')
    const spec = { ipFamilyPolicy: 'RequireDualStack', selector: { app: 'web' }, ports: [{ port: 80, targetPort: HTTP_PORT }] }
    await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: name, name: 'web' }, spec })
    const addresses = listAt(await cluster.get('service', 'web', '-n', name), 'spec.clusterIPs').map(String)
    expect([server.addresses.length, addresses.length]).toEqual([2, 2])
    const urls = addresses.map((address) => urlOf(address, 80))
    const answers = (): Promise<(string | undefined)[]> => Promise.all(urls.map((url) => ask(cluster, client, url)))
    await expect.poll(answers).toEqual(['server', 'server'])
    await expectNodesAddress(cluster, client)
    {
      await using asking = new Asking(cluster.lab, 'node/b', urls[0] ?? '')
      await asking.more(20)
      await cluster.kubectl(['rollout', 'restart', DAEMON_SET, '-n', OURS])
      await rollout(cluster)
      await asking.more(20)
      expect(asking.lost).toEqual([])
    }
    await expectReadings(cluster, answers)
    const closed = { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] }
    await cluster.apply({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
      ...{ metadata: { namespace: name, name: 'closed' }, spec: closed },
    })
    await expect.poll(answers).toEqual([undefined, undefined])
    await takeAway(cluster)
  },
  20 * 60_000,
)
