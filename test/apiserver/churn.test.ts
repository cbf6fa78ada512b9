// SPDX-License-Identifier: Apache-2.0
/** Pods come and go on two nodes of a real API server, by the real shim: each is reached at once, and none leaves
 * anything. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { isLong } from '../cluster/length.ts'
import { felix } from '../kernel/agent/manifests.ts'
import { links, PINS, rows } from '../kernel/agent/node.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { AgentProcess, ScratchNode } from '../../testkit/base/scratch-node.ts'
import { put } from './definitions.ts'
import { LoopbackCluster, PORT } from '../../testkit/kubernetes/loopback-cluster.ts'
import { isDefinition, manifest } from '../../testkit/kubernetes/manifest.ts'
import { programCommand } from '../../testkit/base/program.ts'

const BUILD_MS = 30 * 60_000
const PODS = isLong ? 2000 : 100
/** At a time on each node. */
const WORKERS = 8
/** Rows that packets make, and the kernel or a sweep takes away later. */
const OF_PACKETS = ['np_ct', 'np_frags', 'np_affinity', 'np_links', 'np_paths', 'np_sockets']

interface Node {
  readonly name: string
  readonly address: string
  readonly machine: ScratchNode
  readonly agent: AgentProcess
  readonly relay: ChildProcess
}

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient
let way: Server | undefined
const nodes: Node[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-churn-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const definition of manifest().filter(isDefinition)) await put(client, definition)
  way = createServer((socket) => {
    const onward = connect(PORT, '127.0.0.1')
    for (const one of [socket, onward]) one.on('error', () => one.destroy())
    socket.pipe(onward).pipe(socket)
  }).listen(join(folder, 'way'))
  const pool = (name: string, cidr: string): unknown => ({
    apiVersion: 'netplane.io/v3',
    kind: 'IPPool',
    metadata: { name },
    spec: { cidr },
  })
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }
  for (const object of [account, pool('four', '10.9.0.0/16'), pool('six', 'fd00:9::/112')]) await put(client, object)
  for (const name of ['n1', 'n2']) nodes.push(await startNode(name, `192.0.2.${name.slice(1)}`))
}, BUILD_MS)

afterAll(async () => {
  for (const { agent, relay, machine } of nodes) {
    await agent.kill()
    relay.kill('SIGKILL')
    await machine[Symbol.asyncDispose]()
  }
  way?.close()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** A machine of its own, on which the API server seems to be as well. */
async function startNode(name: string, address: string): Promise<Node> {
  const machine = await ScratchNode.make()
  machine.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add ${address}/24 dev eth0
    ip addr add fd00::${name.slice(1)}/64 dev eth0 nodad
    ip link set eth0 up
    ip link set wire0 up`)
  if (nodes.length === 0) await put(client, felix(machine.cgroup))
  await put(client, { apiVersion: 'v1', kind: 'Node', metadata: { name } })
  const status = { addresses: [{ type: 'InternalIP', address }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name }, { status }, { type: 'merge', subresource: 'status' })
  const script = `const { connect, createServer } = require('net')
    createServer((s) => { const o = connect('${join(folder, 'way')}'); s.on('error', () => o.destroy()); o.on('error', () => s.destroy()); s.pipe(o).pipe(s) })
      .listen(${PORT}, '127.0.0.1', () => console.log('listens'))`
  const relay = machine.spawn([process.execPath, '-e', script])
  if (relay.stdout !== null) await once(relay.stdout, 'data')
  const cni = ['--cni-conf-dir', join(machine.folder, 'net.d'), '--cni-bin-dir', join(machine.folder, 'bin')]
  const flags = ['--node', name, '--kubeconfig', cluster.kubeconfig(), '--state-dir', machine.state, '--health-port', '0', ...cni]
  const agent = new AgentProcess(machine.spawn([...programCommand('agent'), ...flags]))
  await agent.event('cni.installed')
  return { name, address, machine, agent, relay }
}

/** What a node has of pods: rows, links at hooks, devices, files. */
async function inventory({ machine }: Node): Promise<unknown> {
  const maps = readdirSync(machine.path(`${PINS}/maps`)).filter((map) => !OF_PACKETS.includes(map))
  const counts: [string, number][] = []
  for (const map of maps.sort()) counts.push([map, await rows(machine, map)])
  const files = machine.sh(`find ${machine.state} ${machine.folder}/net.d -type f | sort`)
  return { counts, links: Object.keys(links(machine)).sort(), devices: machine.sh('ip -o link | cut -d: -f2 | cut -d@ -f1'), files }
}

async function held(): Promise<string[]> {
  return (await client.list(IP_BLOCK)).flatMap((object) => [...parseIPBlock({ ...object }).held.values()].map(({ pod }) => pod))
}

async function call(node: Node, command: string, pod: string): Promise<Readonly<Record<string, unknown>>> {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: `${pod}-1`,
    CNI_NETNS: netns(node, pod),
    CNI_IFNAME: 'eth0',
    CNI_ARGS: `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}`,
    CNI_PATH: join(node.machine.folder, 'bin'),
  }
  const config = { cniVersion: '1.0.0', name: 'netplane', type: 'netplane-cni', socket: join(node.machine.state, 'cni.sock') }
  const child = spawn(join(packageRoot(), 'build', 'netplane-cni'), { env, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(config))
  const answer = await text(child.stdout)
  const parsed: unknown = answer === '' ? {} : JSON.parse(answer)
  return isObject(parsed) ? parsed : {}
}

function netns({ machine }: Node, pod: string): string {
  return join(machine.folder, `netns-${pod}`)
}

/** Throws with what it has printed. */
async function run({ machine }: Node, script: string): Promise<void> {
  const child = machine.spawn(['sh', '-ec', `exec 2>&1; ${script}`])
  const [output] = await Promise.all([child.stdout === null ? '' : text(child.stdout), once(child, 'close')])
  if (child.exitCode !== 0) throw new Error(`${script}\n${output}`)
}

/** Addresses that pods have at this moment. */
const living = new Set<string>()

/** One pod's life. Returns how long ADD took, in ms. */
async function live(node: Node, pod: string): Promise<number> {
  const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: pod } as const
  const metadata = { namespace: 'default', name: pod, labels: { app: `app-${pod}` } }
  const spec = { nodeName: node.name, terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] }
  await client.create(asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata, spec }))
  await run(node, `touch ${netns(node, pod)}; unshare --net=${netns(node, pod)} true`)
  const start = performance.now()
  const added = await call(node, 'ADD', pod)
  const ms = performance.now() - start
  const ips: readonly unknown[] = Array.isArray(added['ips']) ? added['ips'] : []
  const addresses = ips.map((ip) => (isObject(ip) ? String(ip['address']).replace(/\/\d+$/, '') : ''))
  expect(addresses, JSON.stringify(added)).toHaveLength(2)
  expect(addresses.filter((address) => living.has(address))).toEqual([])
  for (const address of addresses) living.add(address)
  const status = { phase: 'Running', podIP: addresses[0], podIPs: addresses.map((ip) => ({ ip })) }
  await client.patch(ref, { status }, { type: 'merge', subresource: 'status' })
  const pings = addresses.map((address) => `ping -c 1 -W 5 ${address}`).join('\n')
  await run(node, `${pings}\nnsenter --net=${netns(node, pod)} ping -c 1 -W 5 ${node.address}`)
  for (const address of addresses) living.delete(address)
  // as kubelet does: the sandbox first
  expect(await call(node, 'DEL', pod)).toEqual({})
  await client.delete(ref)
  await run(node, `umount ${netns(node, pod)}; rm ${netns(node, pod)}`)
  return ms
}

function percentile(sorted: readonly number[], share: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}

test(
  `${PODS} pods, ${WORKERS} at a time on each of two nodes`,
  async () => {
    for (const node of nodes) {
      // blocks and what else the first one brings
      await live(node, `${node.name}-first`)
    }
    const settled = async (): Promise<unknown> => await Promise.all(nodes.map(inventory))
    const times: number[] = []
    // until nothing is left of those
    let before = await settled()
    await expect
      .poll(
        async () => {
          const [last, now] = [before, await settled()]
          before = now
          return deepEqual(last, now)
        },
        { timeout: 60_000, interval: 3000 },
      )
      .toBe(true)
    let next = 0
    const worker = async (node: Node): Promise<void> => {
      for (let pod = next++; pod < PODS; pod = next++) {
        times.push(await live(node, `p-${pod}`))
      }
    }
    const start = performance.now()
    await Promise.all(nodes.flatMap((node) => Array.from({ length: WORKERS }, () => worker(node))))
    const seconds = (performance.now() - start) / 1000
    times.sort((a, b) => a - b)
    const [half, most] = [percentile(times, 0.5), percentile(times, 0.99)]
    console.log(`churn: ${PODS} pods in ${seconds.toFixed(0)} s, ADD p50 ${half} ms, p99 ${most} ms`)
    expect(times).toHaveLength(PODS)
    await expect.poll(held).toEqual([])
    await expect.poll(settled, { timeout: 180_000, interval: 500 }).toEqual(before)
  },
  isLong ? 120 * 60_000 : 600_000,
)
