// SPDX-License-Identifier: Apache-2.0
/** The operator by its chart on a cluster of IPv6 alone: from nothing to Available, to BPF mode and back under traffic,
 * and away again. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listAt, textAt } from '../../../lab/raw.ts'
import { helmPrograms } from '../../../testkit/kubernetes/build/helm.ts'
import { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { importImage } from '../installed.ts'
import { Namespace } from '../namespaces.ts'
import { ask, HTTP_PORT, runPods, urlOf, type RunningPod } from '../pods.ts'
import { installChart, uninstallChart } from './chart.ts'
import { available, condition, madeNames } from './installed.ts'
import { kernelIds, kernelObjectsLeft } from './kernel-objects.ts'
import { installKubeProxy, kubeProxyForgotten, kubeProxyKnows } from './kube-proxy.ts'
import { lossesText, startStreams, startTraffic } from './losses.ts'
import { modeByNode, standardInstallation, switchTo } from './mode.ts'
import { nodeStates, settledNodeStates } from './node-state.ts'
import { nodeAddresses, served } from './traffic.ts'
import { makeWorld } from './ways.ts'

const PROXY = 'nftables'
const REST_MS = 1000

let cluster: Cluster
let namespace: Namespace
let asking: RunningPod
/** of all nodes, before anything of ours was there */
let clean: Readonly<Record<string, readonly string[]>>
let kernel: ReturnType<typeof kernelIds>

beforeAll(async () => {
  cluster = await Cluster.up({ name: 'ipv6', families: 'IPv6' })
  await Promise.all([importImage(cluster), installKubeProxy(cluster, PROXY)])
  clean = await settledNodeStates(cluster)
  kernel = kernelIds()
  // built once
  await helmPrograms()
}, 15 * 60_000)

afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Of a pod: the service by its name, by its address, and by node ports. */
async function allReached(): Promise<void> {
  const { addresses, nodePort } = await served(cluster, { namespace: namespace.name, app: 'web', port: 'http' })
  const urls = [
    urlOf(`web.${namespace.name}.svc.cluster.local`, 80),
    ...addresses.map((address) => urlOf(address, 80)),
    ...nodeAddresses(cluster).map((address) => urlOf(address, nodePort)),
  ]
  for (const url of urls) await expect.poll(() => ask(cluster, asking, url)).toMatch(/^server-[ab]$/)
}

test('by the chart, and an address without brackets, all is Available within a minute; nothing has an address of IPv4', async () => {
  const { address } = cluster.plane
  expect(address).toMatch(/^fd00:/)
  const began = performance.now()
  const [cidr = ''] = cluster.addresses.podCidrs
  await installChart(cluster, address, standardInstallation({ ipPools: [{ cidr, encapsulation: 'VXLAN' }] }))
  await available(cluster)
  const took = performance.now() - began
  console.log(`ipv6: Available ${(took / 1000).toFixed(1)} s after the first command`)
  expect(took).toBeLessThan(60_000)
  const overlay = 'all nodes are in fd00:31::/64: ipv6-fd00-244-56'
  expect(await condition(cluster, 'preflight', 'Available')).toMatchObject({
    reason: 'Warnings',
    message: expect.stringContaining(overlay) as string,
  })
  await cluster.nodesReady()
  expect(await modeByNode(cluster)).toEqual({ a: 'Standard', b: 'Standard' })
  const told = JSON.stringify([
    listAt(await cluster.get('installations,netplanestatuses,nodenetworks,ippools'), 'items'),
    listAt(await cluster.get('nodes'), 'items').map((node) => listAt(node, 'status.addresses').map((one) => textAt(one, 'address'))),
  ])
  expect(told).not.toMatch(/\b\d+\.\d+\.\d+\.\d+\b/)
})

test('pods are reached by name, cluster address and node ports, there and back; nothing is lost', async () => {
  namespace = await Namespace.make(cluster, 'traffic')
  const world = await makeWorld(cluster, namespace.name)
  const ports = [{ name: 'http', port: 80, targetPort: HTTP_PORT }]
  const spec = { type: 'NodePort', selector: { app: 'server' }, ports }
  await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: namespace.name, name: 'web' }, spec })
  asking = (await runPods(cluster, namespace.name, [{ name: 'asking', node: 'a' }]))[0] ?? asking
  expect(asking.addresses).toEqual([expect.stringMatching(/^fd00:244:/)])
  const { addresses } = await served(cluster, { namespace: namespace.name, app: 'both', port: 'tcp' })
  await kubeProxyKnows(cluster, PROXY, addresses)
  await allReached()

  await using stack = new AsyncDisposableStack()
  const there = stack.use(await startTraffic(world))
  await pause(REST_MS)
  await switchTo(cluster, 'BPF')
  await kubeProxyForgotten(cluster, PROXY)
  // the operator asks these from outside
  const proven = listAt(await cluster.get('nodenetwork', 'a'), 'status.proof.nodePorts')
  expect(proven).toContainEqual(expect.stringMatching(/^\[fd00:31::11\]:\d+$/))
  await allReached()
  const back = stack.use(await startStreams(world))
  await pause(REST_MS)
  await switchTo(cluster, 'Standard')
  await kubeProxyKnows(cluster, PROXY, addresses)
  await pause(REST_MS)
  expect(lossesText('there and back', await there.stop())).toBe('')
  expect(lossesText('back', await back.stop())).toBe('')
  await allReached()
})

test('helm uninstall leaves nothing', async () => {
  await uninstallChart(cluster)
  expect(await nodeStates(cluster)).toEqual(clean)
  expect(await madeNames(cluster)).toEqual(['Namespace netplane-system'])
  expect(await kernelObjectsLeft(kernel)).toEqual([])
  await expect.poll(() => cluster.kubectl(['get', 'netplanestatus'])).toBe('')
})
