// SPDX-License-Identifier: Apache-2.0
/** A whole agent that is stopped for a while, or loses the address it has with a real API server. Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { systemClock } from '#lib/base/clock.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { AgentProcess } from '../../testkit/base/scratch-node.ts'
import { allowToWatch, tokenFor } from './accounts.ts'
import { compact } from './etcd.ts'
import { define } from './definitions.ts'
import { LoopbackCluster, PORT } from '../../testkit/kubernetes/loopback-cluster.ts'
import { Relay } from './relay.ts'
import { programCommand } from '../../testkit/base/program.ts'

/** With silence alone it would take 25 s to find out that a connection is dead. */
const SOON = { timeout: 20_000, interval: 100 }
const STOPPED_MS = 8000
/** where the agent finds the server: this machine's, though not by loopback */
const SERVER = '203.0.113.9'
const NODE = '198.51.100.1'
const [NODEJS = '', ...PROGRAM] = programCommand('agent')

let folder = ''
let cgroup = ''
let cluster: LoopbackCluster
let client: ApiClient
let relay: Relay
let agent: AgentProcess | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-node-life-'))
  cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  sh(`ip link add eth1 type veth peer name wire1; ip link set eth1 up; ip link set wire1 up
      ip addr add ${NODE}/24 dev eth1; ip addr add ${SERVER}/32 dev lo`)
  hintSource(NODE)
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, 'NodeNetwork')
  await client.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } })
  const status = { addresses: [{ type: 'InternalIP', address: NODE }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { status }, { type: 'merge', subresource: 'status' })
  await client.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'life' } })
  relay = await Relay.start(SERVER, PORT, '127.0.0.1')
}, 30 * 60_000)

afterEach(async () => {
  await agent?.kill()
})

afterAll(async () => {
  await relay[Symbol.asyncDispose]()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  execFileSync(NODEJS, [...PROGRAM, '--cleanup', '--state-dir', join(folder, 'state'), '--cgroup', cgroup])
  rmdirSync(cgroup)
  // other files have theirs
  sh(`ip link del eth1; ip addr del ${SERVER}/32 dev lo`)
  rmSync(folder, { recursive: true })
})

function sh(script: string): void {
  execFileSync('sh', ['-ec', script])
}

/** The address that connections to the server have here. */
function hintSource(address: string): void {
  sh(`ip route replace local ${SERVER}/32 dev lo table local proto kernel scope host src ${address}`)
}

async function putToken(seconds: number): Promise<void> {
  const account = await client.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace: 'default', name: 'life' })
  await allowToWatch(client, account)
  writeFileSync(join(folder, 'token'), tokenFor(account, join(folder, 'cluster', 'accounts.key'), seconds))
}

async function startAgent(): Promise<AgentProcess> {
  const kubeconfig = cluster.kubeconfig({ tokenFile: join(folder, 'token') }, SERVER)
  const config = JSON.parse(readFileSync(kubeconfig, 'utf8')) as { clusters: { cluster: Record<string, unknown> }[] }
  for (const one of config.clusters) one.cluster['tls-server-name'] = '127.0.0.1'
  writeFileSync(kubeconfig, JSON.stringify(config))
  const settings = join(folder, 'settings.yaml')
  writeFileSync(settings, `cgroupV2Path: ${cgroup}\nbpfMapSizeConntrack: 4096\n`)
  const flags = [
    '--node',
    'n1',
    '--kubeconfig',
    kubeconfig,
    '--config',
    settings,
    '--state-dir',
    join(folder, 'state'),
    '--health-port',
    '0',
  ]
  agent = new AgentProcess(spawn(NODEJS, [...PROGRAM, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] }))
  await agent.event('dataplane.ready')
  return agent
}

async function put(name: string, port: number): Promise<void> {
  await client.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name },
    spec: { ports: [{ port, protocol: 'TCP' }] },
  })
}

/** Services as the programs have them. */
function inMaps(): string {
  const [node = '', ...cli] = programCommand('cli')
  return execFileSync(node, [...cli, 'bpf', 'nat'], { encoding: 'utf8' })
}

test('an agent stopped while its connections died, its token ran out and the past was forgotten is up to date within seconds', async () => {
  await put('kept', 1001)
  await put('gone', 1002)
  await putToken(3600)
  const one = await startAgent()
  await expect.poll(inMaps, SOON).toMatch(/:1001\/TCP[\s\S]*:1002\/TCP|:1002\/TCP[\s\S]*:1001\/TCP/)
  const pid = one.pid ?? 0
  await putToken(STOPPED_MS / 1000)
  process.kill(pid, 'SIGSTOP')
  try {
    relay.mute()
    await client.delete({ apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'gone' })
    await put('come', 1003)
    await compact()
    await systemClock.sleep(STOPPED_MS, new AbortController().signal)
    // what is in the kernel goes on as it is
    expect(inMaps()).toContain(':1002/TCP')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  // as the kubelet does, which was away as well
  await one.event('agent.resumed')
  await putToken(3600)
  await expect.poll(inMaps, SOON).toContain(':1003/TCP')
  await expect.poll(inMaps, SOON).not.toContain(':1002/TCP')
  expect(inMaps()).toContain(':1001/TCP')
  const awoke = await one.event('agent.resumed')
  expect(Number(awoke['stoppedMs'])).toBeGreaterThan(STOPPED_MS - 3000)
})

test('an agent whose own address goes, goes on by another within seconds', async () => {
  await putToken(3600)
  const one = await startAgent()
  await put('before', 1011)
  await expect.poll(inMaps, SOON).toContain(':1011/TCP')
  sh(`ip addr del ${NODE}/24 dev eth1; ip addr add 198.51.100.77/24 dev eth1`)
  hintSource('198.51.100.77')
  await put('after', 1012)
  await expect.poll(inMaps, SOON).toContain(':1012/TCP')
  expect((await one.event('source.address-removed'))['address']).toBe(NODE)
})
