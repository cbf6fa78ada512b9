// SPDX-License-Identifier: Apache-2.0
/** From kube-proxy's services to ours and back, on nodes with a real kube-proxy, under traffic of every kind: nothing
 * is lost, and the ports by which balancers ask after a node change hands within a second. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { at, numberAt, textAt } from '../../lab/raw.ts'
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { Asking } from './asking.ts'
import { Namespace } from './namespaces.ts'
import {
  installKubeProxy,
  kubeProxyForgotten,
  kubeProxyKnows,
  removeKubeProxy,
  startKubeProxy,
  stopKubeProxy,
} from './operator/kube-proxy.ts'
import { lossesText, startStreams, startTraffic } from './operator/losses.ts'
import { nodeAddresses, served } from './operator/traffic.ts'
import { makeWorld } from './operator/ways.ts'
import { urlOf } from './pods.ts'
import { sharedCluster } from './setup.ts'

const REST_MS = 2000
/** A look starts a process: more of them would keep the processors from what is measured. */
const LOOK_MS = 500
/** after which the kernel forgets datagrams that were an exchange; and its own */
const FORGOTTEN_S = 3
const USUAL_S = 30
const HANDED_OVER_MS = 1000
const PROXY_HEALTH_PORT = 10256
/** the API server and the services of the test: by cluster addresses and node ports of both families */
const PODS_ASK = 16
/** a client's, for datagrams */
const KEPT_PORT = 20_000

let cluster: Cluster

beforeAll(async () => {
  cluster = await sharedCluster()
  await forgetAfter(FORGOTTEN_S)
})

afterAll(async () => {
  await forgetAfter(USUAL_S)
  await cluster.kubectl(['delete', 'felixconfiguration', 'default', '--ignore-not-found'])
})

async function forgetAfter(seconds: number): Promise<void> {
  for (const node of cluster.nodes)
    await cluster.lab.mustRun(`node/${node}`, ['sysctl', '-qw', `net.netfilter.nf_conntrack_udp_timeout=${seconds}`])
}

/** Printed, so that a loss can be laid to what went on at its time. */
async function phase(name: string, work: () => Promise<unknown>): Promise<void> {
  console.log(`${new Date().toISOString()} ${name}`)
  await work()
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Resolves when every node serves in this mode, and has proven its services. */
async function setMode(mode: 'BPF' | 'Standard'): Promise<void> {
  const spec = { bpfEnabled: mode === 'BPF', bpfConntrackTimeouts: { udpTimeout: `${FORGOTTEN_S}s` } }
  await cluster.apply({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' }, spec })
  for (const node of cluster.nodes) await modeIs(node, mode)
}

async function modeIs(node: string, mode: 'BPF' | 'Standard'): Promise<void> {
  let status: unknown
  const isProven = async (): Promise<true | undefined> => {
    status = at(await cluster.get('nodenetwork', node), 'status')
    const [now, proof] = ['dataplane', 'proof'].map((part) => at(status, part))
    return textAt(now, 'mode') === mode && textAt(proof, 'mode') === mode && textAt(proof, 'state') === 'Proven' ? true : undefined
  }
  const proven = await waitFor(isProven, { timeoutMs: 30_000, everyMs: LOOK_MS })
  if (proven === undefined) throw new Error(`node ${node} is not in mode ${mode}: ${JSON.stringify(status)}`)
}

/** What each node has asked from a pod of its own, of either family. */
async function expectAskedFromPods(): Promise<void> {
  for (const node of cluster.nodes) {
    const proof = at(await cluster.get('nodenetwork', node), 'status.proof')
    expect(numberAt(proof, 'fromPod.answered'), JSON.stringify(proof)).toBeGreaterThanOrEqual(PODS_ASK)
  }
}

/** Where balancers ask after this node. */
async function healthUrls(namespace: string, address: string): Promise<readonly string[]> {
  const port = numberAt(await cluster.get('service', 'local', '-n', namespace), 'spec.healthCheckNodePort') ?? 0
  return [PROXY_HEALTH_PORT, port].map((one) => urlOf(address, one, '/healthz'))
}

function expectShort(asked: readonly Asking[]): void {
  const silences = asked.map(({ longestSilenceMs }) => Math.round(longestSilenceMs))
  console.log(`health ports: silent for ${silences.join(' and ')} ms`)
  expect(Math.max(...silences)).toBeLessThan(HANDED_OVER_MS)
}

test.each(['iptables', 'nftables'] as const)('with kube-proxy of mode %s, there and back', async (proxy) => {
  await using stack = new AsyncDisposableStack()
  await installKubeProxy(cluster, proxy)
  stack.defer(() => removeKubeProxy(cluster))
  await setMode('Standard')
  const namespace = stack.use(await Namespace.make(cluster, `mode-${proxy}`))
  const world = await makeWorld(cluster, namespace.name)
  const { addresses } = await served(cluster, { namespace: namespace.name, app: 'both', port: 'tcp' })
  await kubeProxyKnows(cluster, proxy, addresses)

  const control = stack.use(await startTraffic(world))
  await pause(REST_MS)
  expect(lossesText('at rest', await control.stop())).toBe('')

  const [address = ''] = nodeAddresses(cluster)
  const { nodePort } = await served(cluster, { namespace: namespace.name, app: 'both', port: 'udp' })
  const client = stack.adopt(new RequestAgent(cluster.lab, 'client'), (agent) => {
    agent.close()
  })
  const ask = {
    do: 'ask',
    to: `udp:${address}:${nodePort}`,
    count: 1,
    payload: 64,
    reply: 0,
    timeoutMs: 2000,
    localPort: KEPT_PORT,
  } as const
  expect(await client.order(ask)).toEqual([expect.objectContaining({ pod: expect.stringMatching(/^server-/) as string })])

  const urls = await healthUrls(namespace.name, address)
  const askHealth = (): Asking[] => urls.map((url) => stack.use(new Asking(cluster.lab, 'client', url)))
  const going = askHealth()
  const there = stack.use(await startTraffic(world))
  await phase('to BPF mode', () => setMode('BPF'))
  await expectAskedFromPods()
  await pause(REST_MS)
  await phase('kube-proxy stops', () => stopKubeProxy(cluster))
  await phase('its rules go', () => kubeProxyForgotten(cluster, proxy))
  await phase('BPF mode alone', () => pause(REST_MS))
  expect(await client.order(ask), 'from a port that kube-proxy had').toEqual([
    expect.objectContaining({ pod: expect.stringMatching(/^server-/) as string }),
  ])
  expectShort(going)
  const coming = askHealth()
  const back = stack.use(await startStreams(world))
  await phase('kube-proxy starts', () => startKubeProxy(cluster))
  await phase('it has rules', () => kubeProxyKnows(cluster, proxy, addresses))
  await phase('beside kube-proxy', () => pause(REST_MS))
  await phase('to Standard mode', () => setMode('Standard'))
  await phase('Standard mode', () => pause(REST_MS))
  expect(lossesText('there and back', await there.stop())).toBe('')
  expect(lossesText('back', await back.stop())).toBe('')
  expectShort(coming)
})
