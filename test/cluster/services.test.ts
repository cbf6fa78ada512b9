// SPDX-License-Identifier: Apache-2.0
/** Services of a real cluster: cluster addresses, node ports, and endpoints that come and go. Layer: test. */
import { expect, test } from 'vitest'
import { listAt, numberAt } from '../../lab/raw.ts'
import { Asking } from './asking.ts'
import { Namespace } from './namespaces.ts'
import { ask, askFrom, HTTP_PORT, runPods, urlOf, type RunningPod } from './pods.ts'
import { sharedCluster } from './setup.ts'
import { answeredBy } from './web.ts'

const cluster = await sharedCluster()
const LABELS = { app: 'web' }

interface Web {
  readonly pods: readonly RunningPod[]
  readonly addresses: readonly string[]
  readonly nodePort: number
}

/** Two pods on two nodes behind a service of both families. */
async function makeWeb(namespace: string): Promise<Web> {
  const spec = { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack', selector: LABELS, ports: [{ port: 80, targetPort: HTTP_PORT }] }
  await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'web' }, spec })
  const pods = await runPods(cluster, namespace, [
    { name: 'web-a', node: 'a', labels: LABELS },
    { name: 'web-b', node: 'b', labels: LABELS },
  ])
  const service = await cluster.get('service', 'web', '-n', namespace)
  const addresses = listAt(service, 'spec.clusterIPs').filter((address) => typeof address === 'string')
  return { pods, addresses, nodePort: numberAt(listAt(service, 'spec.ports')[0], 'nodePort') ?? 0 }
}

test('a cluster address is answered by all pods, asked from pods and from nodes, by both families', async () => {
  await using namespace = await Namespace.make(cluster, 'services')
  const web = await makeWeb(namespace.name)
  const [client] = await runPods(cluster, namespace.name, [{ name: 'client', node: 'a' }])
  if (client === undefined) throw new Error('no client')
  expect(web.addresses).toHaveLength(2)
  for (const address of web.addresses) {
    await answeredBy(['web-a', 'web-b'], () => ask(cluster, client, urlOf(address, 80)))
    await answeredBy(['web-a', 'web-b'], () => askFrom(cluster, 'node/b', urlOf(address, 80)))
  }
  expect(await ask(cluster, client, 'http://web.services.svc.cluster.local/hostname')).toMatch(/^web-[ab]$/)
})

test('a node port keeps the address of a client outside, on any node', async () => {
  await using namespace = await Namespace.make(cluster, 'nodeports')
  const web = await makeWeb(namespace.name)
  const client = cluster.lab.topology.client.addresses.map((address) => address.split('/')[0])
  for (const node of cluster.lab.topology.nodes)
    for (const address of node.addresses.map((text) => text.split('/')[0] ?? '')) {
      await answeredBy(['web-a', 'web-b'], () => askFrom(cluster, 'client', urlOf(address, web.nodePort)))
      const seen = await askFrom(cluster, 'client', urlOf(address, web.nodePort, '/clientip'))
      expect(client).toContain(seen?.replace(/:\d+$/, '').replaceAll(/[[\]]/g, ''))
    }
})

test('a pod that goes is asked no more, and one that comes is; no request is lost', async () => {
  await using namespace = await Namespace.make(cluster, 'endpoints')
  const web = await makeWeb(namespace.name)
  const node = cluster.lab.topology.nodes[0]?.addresses[0]?.split('/')[0] ?? ''
  await answeredBy(['web-a', 'web-b'], () => askFrom(cluster, 'client', urlOf(node, web.nodePort)))
  await using asking = new Asking(cluster.lab, 'client', urlOf(node, web.nodePort))
  await asking.more(20)
  await runPods(cluster, namespace.name, [{ name: 'web-c', node: 'b', labels: LABELS }])
  await answeredBy(['web-a', 'web-b', 'web-c'], () => askFrom(cluster, 'client', urlOf(node, web.nodePort)))
  // out of the service first: it goes on answering what is open
  await cluster.kubectl(['label', 'pod', 'web-a', '-n', namespace.name, 'app-'])
  await answeredBy(['web-b', 'web-c'], () => askFrom(cluster, 'client', urlOf(node, web.nodePort)))
  await cluster.kubectl(['delete', 'pod', 'web-a', '-n', namespace.name])
  await asking.more(20)
  expect(asking.lost).toEqual([])
})
