// SPDX-License-Identifier: Apache-2.0
/** A datastore that is locked under a whole agent: nothing of ours is written, new pods wait, what runs goes on.
 * Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { CONFLISTS } from '#agent/cni/install/conflist.ts'
import { felix } from '../kernel/agent/manifests.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { AgentProcess } from '../../testkit/base/scratch-node.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { isDefinition, manifest } from '../../testkit/kubernetes/manifest.ts'
import { withinBestOfThree } from '../support/steady/best-of.ts'
import { put } from './definitions.ts'
import { programCommand } from '../../testkit/base/program.ts'

const BUILD_MS = 30 * 60_000
const [NODEJS = '', ...PROGRAM] = programCommand('agent')
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' } as const
/** An unlocked datastore is written to within a second or so; the machine may be slow. */
const SOON = { interval: 50 }
const LOCKED = 'the datastore is locked: ClusterInformation default has datastoreReady: false'

let folder = ''
let cgroup = ''
let file = ''
let cluster: LoopbackCluster
let client: ApiClient
const agents: AgentProcess[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-datastore-'))
  file = join(folder, 'ready')
  cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  sh('ip link add eth2 type veth peer name wire2; ip addr add 192.0.2.1/24 dev eth2; ip link set eth2 up; ip link set wire2 up')
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const definition of manifest().filter(isDefinition)) await put(client, definition)
  const pool = { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'pods' }, spec: { cidr: '10.9.0.0/24' } }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }
  for (const object of [{ ...NODE, metadata: { name: 'n1' } }, account, pool, felix(cgroup), pod('a'), pod('b')]) await put(client, object)
  const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] }
  await client.patch(NODE, { status }, { type: 'merge', subresource: 'status' })
  for (const name of ['a', 'b']) {
    writeFileSync(netns(name), '')
    sh(`unshare --net=${netns(name)} true`)
  }
}, BUILD_MS)

afterAll(async () => {
  for (const agent of agents) await agent.kill()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  execFileSync(NODEJS, [...PROGRAM, '--cleanup', '--state-dir', join(folder, 'state'), '--cgroup', cgroup])
  rmdirSync(cgroup)
  sh(`umount ${netns('a')} ${netns('b')}; ip link del eth2`)
  rmSync(folder, { recursive: true })
})

function pod(name: string): object {
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name }, spec }
}

function sh(script: string): void {
  execFileSync('sh', ['-ec', script])
}

function netns(name: string): string {
  return join(folder, `netns-${name}`)
}

function start(): AgentProcess {
  const state = ['--state-dir', join(folder, 'state'), '--health-port', '0', '--datastore-file', file]
  const cni = ['--cni-conf-dir', join(folder, 'net.d'), '--cni-bin-dir', join(folder, 'bin')]
  const args = [...PROGRAM, '--node', 'n1', '--kubeconfig', cluster.kubeconfig(), ...state, ...cni]
  const agent = new AgentProcess(spawn(NODEJS, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
  agents.push(agent)
  return agent
}

/** What the plugin says, as JSON; nothing is an empty object. */
async function call(command: string, name: string, timeoutSeconds = 30): Promise<unknown> {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: `${name}-1`,
    CNI_NETNS: netns(name),
    CNI_IFNAME: 'eth0',
    CNI_ARGS: `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`,
    CNI_PATH: join(folder, 'bin'),
  }
  const socket = join(folder, 'state', 'cni.sock')
  const child = spawn(join(packageRoot(), 'build', 'netplane-cni'), { env, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify({ cniVersion: '1.0.0', name: 'netplane', type: 'netplane-cni', socket, timeoutSeconds }))
  const output = await text(child.stdout)
  return output === '' ? {} : JSON.parse(output)
}

async function lock(isLocked: boolean): Promise<void> {
  await client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: !isLocked } }, { type: 'merge' })
}

async function isOpen(): Promise<boolean> {
  return await Promise.resolve(existsSync(file))
}

/** Every object of ours that agents write, by its version. */
async function written(): Promise<readonly string[]> {
  const kinds = [IP_BLOCK, NODE_NETWORK, CLUSTER_INFORMATION]
  const objects = (await Promise.all(kinds.map(({ apiVersion, kind }) => client.list({ apiVersion, kind })))).flat()
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion ?? ''}`).sort()
}

async function holders(): Promise<readonly string[]> {
  const blocks = await client.list(IP_BLOCK)
  return blocks.flatMap((object) => [...parseIPBlock({ ...object }).held.values()].map(({ containerId }) => containerId))
}

/** The agent has had its rounds. */
async function someTime(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 4000))
}

test('a cluster that says nothing of it is open, and its first agent says that it is', async () => {
  start()
  await expect.poll(isOpen, { timeout: 60_000 }).toBe(true)
  await expect.poll(() => client.get(CLUSTER_INFORMATION).catch(() => undefined), SOON).toMatchObject({ spec: { datastoreReady: true } })
  await expect.poll(() => existsSync(join(folder, 'net.d', CONFLISTS.own)), SOON).toBe(true)
  expect(await call('ADD', 'a')).toMatchObject({ ips: [{}] })
  expect(await holders()).toEqual(['a-1'])
})

test('while it is locked a pod goes, another waits, and nothing of ours is written; then all of it is', async () => {
  const close = async (): Promise<void> => {
    await lock(true)
    await expect.poll(isOpen, SOON).toBe(false)
  }
  await close()
  const before = await written()
  expect(before.map((one) => one.split(' ')[0])).toEqual(['ClusterInformation', 'IPAMBlock', 'NodeNetwork'])
  await client.patch(NODE, { metadata: { labels: { team: 'a' } } }, { type: 'merge' })
  expect(await call('DEL', 'a')).toEqual({})
  expect(await call('ADD', 'b', 2)).toMatchObject({ code: 11, msg: `not ready in time: ${LOCKED}` })
  let waits = call('ADD', 'b')
  await someTime()
  expect(await written()).toEqual(before)
  await withinBestOfThree(5000, async (tries) => {
    if (tries > 1) {
      expect(await call('DEL', 'b')).toEqual({})
      await close()
      waits = call('ADD', 'b')
      await someTime()
    }
    await lock(false)
    const began = performance.now()
    expect(await waits).toMatchObject({ ips: [{}] })
    return performance.now() - began
  })
  await expect.poll(holders, SOON).toEqual(['b-1'])
  await expect.poll(() => client.get({ ...NODE_NETWORK, name: 'n1' }), SOON).toMatchObject({ spec: { labels: { team: 'a' } } })
  await expect.poll(isOpen, SOON).toBe(true)
})

test('what Kubernetes has of its own is written all the same', async () => {
  await lock(true)
  await expect.poll(isOpen, SOON).toBe(false)
  const condition = { type: 'NetworkUnavailable', status: 'True', reason: 'Test', message: '' }
  await client.patch(NODE, { status: { conditions: [condition] } }, { type: 'strategic', subresource: 'status' })
  const before = await written()
  await agents[0]?.kill()
  start()
  const conditions = async (): Promise<unknown> => (await client.get(NODE))['status']
  const up: unknown = expect.objectContaining({ type: 'NetworkUnavailable', status: 'False' })
  await expect.poll(conditions, { timeout: 60_000 }).toMatchObject({ conditions: expect.arrayContaining([up]) as unknown })
  expect(await written()).toEqual(before)
  expect(await isOpen()).toBe(false)
  await lock(false)
  await expect.poll(isOpen, SOON).toBe(true)
})

test('while the API server is away the last word stands, also for the next agent of the pod', async () => {
  cluster.signal('kube-apiserver', 'SIGSTOP')
  try {
    await someTime()
    expect(await isOpen()).toBe(true)
    await agents.at(-1)?.kill()
    const next = start()
    await next.event('cni.listening')
    await someTime()
    expect(await isOpen()).toBe(true)
  } finally {
    cluster.signal('kube-apiserver', 'SIGCONT')
  }
  await lock(true)
  await expect.poll(isOpen, { timeout: 60_000, interval: 50 }).toBe(false)
})
