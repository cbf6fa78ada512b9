// SPDX-License-Identifier: Apache-2.0
/** The operator's switch from a real kube-proxy to us and back, on two real nodes and others that are played, which
 * are held and which join meanwhile, under traffic of every kind: nothing is lost. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { textAt } from '../../../lab/raw.ts'
import type { ConstantTraffic } from '../../../lab/traffic/accounts.ts'
import { Random } from '../../../soak/random.ts'
import { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { addTestNodes, addTestNodesAt, holdTestNode, wakeTestNode } from '../../../testkit/kubernetes/kubelets/in-cluster.ts'
import { Asking } from '../asking.ts'
import { importImage } from '../installed.ts'
import { Namespace } from '../namespaces.ts'
import { available, condition, deleteInstallation, freeLease, installOperator, killAgent, killerOf, OPERATOR } from './installed.ts'
import { expectOneServed, JOINING } from './joining.ts'
import { kernelIds, kernelObjectsLeft } from './kernel-objects.ts'
import { installKubeProxy, kubeProxyForgotten, kubeProxyKnows, labelKubeProxy, stopSelectorOf } from './kube-proxy.ts'
import { lossesText, startStreams, startTraffic } from './losses.ts'
import {
  askFor,
  defaultConfiguration,
  isOver,
  modeByNode,
  setMaxUnavailable,
  standardInstallation,
  SWITCH_S,
  SWITCH_WITH_KILLS_S,
  switchTo,
} from './mode.ts'
import { nodeStates, settledNodeStates } from './node-state.ts'
import { served } from './traffic.ts'
import { makeWorld, type World } from './ways.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { SEED } from '../../support/steady/seed.ts'

const PROXY = 'iptables'
const API_SERVER = 'https://10.96.0.1/healthz'
const PLAYED = ['f1', 'f2', 'f3', 'f4']
/** is not ready for a while */
const HELD = 'f4'
/** join where something is killed */
const LATE = ['j1', 'j2', 'j3', 'j4', 'j5', 'j6', 'j7', 'j8']
const ARGO_CD = 'argocd.argoproj.io/instance'
const REST_MS = 2000
/** of operator, agents and API server: so often there and back, each once on the way; the soak has more */
const ROUNDS = Number(process.env['ROUNDS'] ?? 1)
/** between two of them at most */
const SPAN_MS = 2500

let cluster: Cluster
let namespace: Namespace
let world: World
/** before the Installation */
let clean: Awaited<ReturnType<typeof nodeStates>>
let kernel: ReturnType<typeof kernelIds>
/** there and back */
let traffic: ConstantTraffic
const ending = new AsyncDisposableStack()

beforeAll(async () => {
  cluster = await Cluster.up({ name: 'switch' })
  await Promise.all([importImage(cluster), installKubeProxy(cluster, PROXY)])
  await kubeProxyKnows(cluster, PROXY, ['10.96.0.1'])
  clean = await settledNodeStates(cluster)
  kernel = kernelIds()
  await installOperator(cluster)
  await onlyOnMachines()
  await cluster.apply(standardInstallation({}))
  await available(cluster)
  await addTestNodes(cluster, PLAYED)
  await available(cluster, SWITCH_S)
  namespace = await Namespace.make(cluster, 'traffic')
  world = await makeWorld(cluster, namespace.name)
  await kubeProxyKnows(cluster, PROXY, await addresses())
}, 15 * 60_000)

afterAll(async () => {
  await ending.disposeAsync()
  await cluster[Symbol.asyncDispose]()
})

/** An operator that is killed comes back where something runs. */
async function onlyOnMachines(): Promise<void> {
  await cluster.kubectl(['label', 'nodes', '--all', 'machine=real'])
  const patch = { spec: { template: { spec: { nodeSelector: { machine: 'real' } } } } }
  await cluster.kubectl(['patch', 'deployment', OPERATOR, '-n', OPERATOR, '--type=merge', '-p', JSON.stringify(patch)])
}

async function addresses(): Promise<readonly string[]> {
  return (await served(cluster, { namespace: namespace.name, app: 'both', port: 'tcp' })).addresses
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('a node that is not ready stops the waves: nodes that have switched stay, and so does the default', async () => {
  traffic = ending.use(await startTraffic(world))
  await pause(REST_MS)
  await addTestNodesAt(cluster, JOINING.BPF)
  await labelKubeProxy(cluster, ARGO_CD, 'base')
  const before = await defaultConfiguration(cluster)
  await askFor(cluster, 'BPF')
  // one at a time: the canary, which is not the operator's node, and the first after it
  for (const node of cluster.nodes)
    await cluster.kubectl(['wait', '--for=create', `felixconfiguration/node.${node}`, '--timeout=60s'], { timeoutMs: 70_000 })
  await holdTestNode(cluster, HELD)
  const told = async (): Promise<string> => textAt(await condition(cluster, 'services', 'Progressing'), 'message') ?? ''
  const isHeld = async (): Promise<boolean> => {
    const text = await told()
    return text.includes(`phase wave; not ready, waits up to 600 s: ${HELD}; still to come`) && !/not proven|no word/.test(text)
  }
  await expect.poll(isHeld, { timeout: 30_000 }).toBe(true)
  const held = await modeByNode(cluster)
  expect(held).toMatchObject({ a: 'BPF', b: 'BPF', [HELD]: 'Standard', 'to-bpf-wave': 'Standard' })
  await pause(REST_MS)
  expect(await modeByNode(cluster)).toEqual(held)
  expect(await defaultConfiguration(cluster)).toEqual(before)
  await wakeTestNode(cluster, HELD)
  await setMaxUnavailable(cluster, '25%')
  await expect.poll(() => condition(cluster, 'services', 'Available'), { timeout: 60_000 }).toMatchObject({ status: 'True' })
  expect(new Set(Object.values(await modeByNode(cluster)))).toEqual(new Set(['BPF']))
})

test('a kube-proxy that Argo CD manages is named and stays; it goes once its label has gone', async () => {
  const message = `DaemonSet kube-system/kube-proxy is not stopped: Argo CD (${ARGO_CD}: base) manages it; stop it there`
  await expect
    .poll(() => condition(cluster, 'proxy', 'Degraded'), { timeout: 30_000 })
    .toMatchObject({ status: 'True', reason: 'ManagedByAnother', message })
  // joins by this message
  await cluster.kubectl(['wait', '--for=create', 'nodenetwork/to-bpf-proxy', '--timeout=60s'], { timeoutMs: 70_000 })
  expect(await stopSelectorOf(cluster)).toBeUndefined()
  await kubeProxyKnows(cluster, PROXY, await addresses())
  await labelKubeProxy(cluster, ARGO_CD, null)
  await isOver(cluster, 'BPF')
  await kubeProxyForgotten(cluster, PROXY)
  await expectOneServed(cluster, 'BPF')
})

test('back to Standard kube-proxy comes first, and nothing was lost there and back', async () => {
  await using back = await startStreams(world)
  await pause(REST_MS)
  await addTestNodesAt(cluster, JOINING.Standard)
  await switchTo(cluster, 'Standard')
  await kubeProxyKnows(cluster, PROXY, await addresses())
  await expectOneServed(cluster, 'Standard')
  await pause(REST_MS)
  expect(lossesText('there and back', await traffic.stop())).toBe('')
  expect(lossesText('back', await back.stop())).toBe('')
  // the operator's own node was asked by the other one, and has answered it
  const log = await cluster.kubectl(['logs', '-n', OPERATOR, `deployment/${OPERATOR}`])
  const marks = log.split('\n').filter((line) => /"mark":\{"to":"Standard",\S*"outside":\["\S+"\],"from":"[ab]"/.test(line))
  expect(marks.map((line) => line.includes('"failed"'))).toEqual([false])
})

const VICTIMS = ['operator', 'agent of a', 'agent of b', 'API server'] as const

async function kill(victim: (typeof VICTIMS)[number]): Promise<void> {
  switch (victim) {
    case 'operator':
      await (
        await killerOf(cluster)
      )()
      await freeLease(cluster)
      break
    case 'API server':
      await cluster.plane.stopServer('SIGKILL')
      await cluster.plane.startServer()
      break
    default:
      await killAgent(cluster, victim === 'agent of a' ? 'a' : 'b')
  }
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ item }) => item)
}

// in the gate test/apiserver/operator/switch.test.ts kills operators, and test/lab/processes/kill.test.ts agents
test.each(ofMatrix([ROUNDS], []))(
  'operator, agents and API server that are killed meanwhile, and nodes that join, change nothing of that, in %i rounds',
  async (rounds) => {
    const random = new Random(SEED)
    console.log(`switch: SEED=${SEED}`)
    const late = LATE.values()
    await using meanwhile = await startTraffic(world)
    for (const mode of Array.from({ length: rounds }, () => ['BPF', 'Standard'] as const).flat()) {
      const began = performance.now()
      const since = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s into the switch to ${mode}`
      await askFor(cluster, mode)
      for (const victim of shuffled(VICTIMS, random)) {
        await pause(random.below(SPAN_MS))
        console.log(`switch: ${since()} the ${victim} is killed`)
        await kill(victim)
        const node = late.next().value
        if (node === undefined) continue
        console.log(`switch: ${since()} ${node} joins`)
        await addTestNodes(cluster, [node])
      }
      await isOver(cluster, mode, SWITCH_WITH_KILLS_S)
      console.log(`switch: ${since()} it is over`)
    }
    await kubeProxyKnows(cluster, PROXY, await addresses())
    await pause(REST_MS)
    expect(lossesText('while much is killed', await meanwhile.stop())).toBe('')
  },
  3 * 60_000 + ROUNDS * 2 * SWITCH_WITH_KILLS_S * 1000,
)

test('an Installation that is deleted in BPF mode leaves the services to kube-proxy, and nothing else', async () => {
  await switchTo(cluster, 'BPF')
  await kubeProxyForgotten(cluster, PROXY)
  await using stack = new AsyncDisposableStack()
  const asking = cluster.nodes.map((node) => stack.use(new Asking(cluster.lab, `node/${node}`, API_SERVER)))
  await Promise.all(asking.map((one) => one.more(10)))
  await deleteInstallation(cluster)
  await kubeProxyKnows(cluster, PROXY, await addresses())
  await Promise.all(asking.map((one) => one.more(10)))
  expect(asking.flatMap(({ lost }) => lost)).toEqual([])
  expect(await nodeStates(cluster)).toEqual(clean)
  expect(await kernelObjectsLeft(kernel)).toEqual([])
}, 180_000)
