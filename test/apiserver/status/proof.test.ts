// SPDX-License-Identifier: Apache-2.0
/** Services that an agent asks as its node and from a pod of its own, with what the kernel and a real API server have
 * of that pod. Layer: test. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeNetns } from '#native'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { IP_BLOCK } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { nodeNetworkStatusOf, type Proof } from '#lib/kube/objects/node-network-status.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { waitFor } from '../../../lab/wait.ts'
import { felix } from '../../kernel/agent/manifests.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { AgentProcess } from '../../../testkit/base/scratch-node.ts'
import { put } from '../definitions.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { isDefinition, manifest } from '../../../testkit/kubernetes/manifest.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const BUILD_MS = 30 * 60_000
const [NODEJS = '', ...PROGRAM] = programCommand('agent')
const [OUTSIDE, OTHER] = ['192.0.2.2', '192.0.2.3']
const [SHOP, NAMES, GAME, STICKY] = ['10.96.0.9', '10.96.0.53', '10.96.0.99', '10.96.0.77']
const MAPS = '/sys/fs/bpf/netplane/maps'
/** A web server, a name server that knows no name, and a game that says what it gets. */
const SERVERS = `
  require('node:net').createServer((socket) => socket.on('error', () => undefined)).listen(8080)
  const game = require('node:dgram').createSocket('udp4')
  game.on('message', (message, { address }) => console.log('game: ' + address))
  game.bind(9000)
  const names = require('node:dgram').createSocket('udp4')
  names.on('message', (message, { port, address }) => { message[2] |= 0x80; message[3] |= 3; names.send(message, port, address) })
  names.bind(53)`
/** What a kube-proxy does for the node's processes. */
const PROXY = `
  table ip proxy {
    chain output {
      type nat hook output priority -100
      ip daddr ${SHOP} tcp dport 80 dnat to ${OUTSIDE}:8080
      ip daddr ${NAMES} udp dport 53 dnat to ${OUTSIDE}:53
      ip daddr ${STICKY} tcp dport 80 dnat to ${OUTSIDE}:8080
    }
  }`

let folder = ''
let cgroup = ''
let outside = -1
let servers: ChildProcess
/** what they have said */
let said = ''
let cluster: LoopbackCluster
let client: ApiClient
let agent: AgentProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-proof-'))
  cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  outside = makeNetns()
  const there = `/proc/${process.pid}/fd/${outside}`
  sh(`ip link add eth0 type veth peer name wire0; ip link set wire0 netns ${there}
    ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up; ip route add default via ${OUTSIDE}
    nsenter --net=${there} sh -ec "ip addr add ${OUTSIDE}/24 dev wire0; ip addr add ${OTHER}/24 dev wire0; ip link set wire0 up; ip route add 10.9.0.0/24 via 192.0.2.1"`)
  execFileSync('nft', ['-f', '-'], { input: PROXY })
  servers = spawn('nsenter', [`--net=${there}`, process.execPath, '-e', SERVERS], { stdio: ['ignore', 'pipe', 'ignore'] })
  servers.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const definition of manifest().filter(isDefinition)) await put(client, definition)
  const pool = { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'pods' }, spec: { cidr: '10.9.0.0/24' } }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name: 'a' } }
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  const settings = felix(cgroup, { bpfEnabled: false, bpfProxyIptablesCleanupEnabled: false })
  for (const object of [node, account, { ...pod, spec }, pool, settings]) await put(client, object)
  const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { status }, { type: 'merge', subresource: 'status' })
  for (const object of [...served('db', SHOP, ['TCP', 80, 8080]), ...served('names', NAMES, ['UDP', 53, 53])]) await put(client, object)
  agent = start()
  await agent.event('cni.listening')
}, BUILD_MS)

afterAll(async () => {
  await agent.kill()
  servers.kill('SIGKILL')
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  execFileSync(NODEJS, [...PROGRAM, '--cleanup', '--state-dir', join(folder, 'state'), '--cgroup', cgroup])
  closeSync(outside)
  rmdirSync(cgroup)
  sh(`nft delete table ip proxy; umount ${join(folder, 'netns-a')}`)
  rmSync(folder, { recursive: true })
})

function sh(script: string): string {
  return execFileSync('sh', ['-ec', script], { encoding: 'utf8' })
}

function served(name: string, clusterIP: string, [protocol, port, targetPort]: readonly [string, number, number]): readonly object[] {
  const metadata = { namespace: 'default', name }
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP, ports: [{ port, targetPort, protocol }] } },
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
      ports: [{ port: targetPort, protocol }],
      endpoints: [{ addresses: [OUTSIDE], conditions: { ready: true } }],
    },
  ]
}

function start(): AgentProcess {
  const state = ['--state-dir', join(folder, 'state'), '--health-port', '0']
  const cni = ['--cni-conf-dir', join(folder, 'net.d'), '--cni-bin-dir', join(folder, 'bin')]
  const args = [...PROGRAM, '--node', 'n1', '--kubeconfig', cluster.kubeconfig(), ...state, ...cni]
  return new AgentProcess(spawn(NODEJS, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** Another agent in its place. */
async function startAgain(): Promise<void> {
  await agent.kill()
  agent = start()
}

function call(command: string): string {
  const netns = join(folder, 'netns-a')
  const env = {
    ...{ CNI_COMMAND: command, CNI_CONTAINERID: 'a-1', CNI_NETNS: netns, CNI_IFNAME: 'eth0' },
    ...{ CNI_ARGS: 'K8S_POD_NAMESPACE=default;K8S_POD_NAME=a', CNI_PATH: join(folder, 'bin') },
  }
  const config = { cniVersion: '1.0.0', name: 'netplane', type: 'netplane-cni', socket: join(folder, 'state', 'cni.sock') }
  return execFileSync(join(packageRoot(), 'build', 'netplane-cni'), { env, input: JSON.stringify(config), encoding: 'utf8' })
}

/** The proof, once it is this; what it is instead when it is not in time. */
async function proofOnce(isThat: (proof: Proof) => boolean, timeoutMs = 90_000): Promise<Proof | undefined> {
  let last: Proof | undefined
  const look = async (): Promise<true | undefined> => {
    const found = await client.get({ ...NODE_NETWORK, name: 'n1' }).catch(() => undefined)
    last = nodeNetworkStatusOf(found?.['status'])?.proof
    return last !== undefined && isThat(last) ? true : undefined
  }
  await waitFor(look, { timeoutMs, everyMs: 100 })
  return last
}

/** What an agent finds that begins meanwhile, where this map loses what it has again and again. */
async function withoutRows<T>(map: string, look: () => Promise<T>): Promise<T> {
  const program = join(packageRoot(), 'test/apiserver/status/remove-rows.ts')
  const removing = spawn(process.execPath, ['--conditions=source', program, join(MAPS, map)], { stdio: 'inherit' })
  try {
    await startAgain()
    return await look()
  } finally {
    removing.kill('SIGKILL')
  }
}

function podDevices(): string {
  return sh('ip -o link 2>/dev/null | grep -o "npl[0-9a-f]*" || true')
}

async function blocks(): Promise<readonly string[]> {
  return (await client.list(IP_BLOCK)).map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion ?? ''}`)
}

test('without a block of addresses the node asks alone, and says so', async () => {
  const proof = await proofOnce(({ fromPod }) => fromPod?.reason.includes('no block of this node has an address') === true)
  expect(proof).toMatchObject({ state: 'Proven', fromPod: { asked: 0, answered: 0 } })
  expect(proof?.fromPod?.reason).toContain('no block of this node has an address to spare')
  expect(await blocks()).toEqual([])
})

test('a node that has one asks from a pod as well, over TCP and UDP, and nothing is left of it or written down', async () => {
  const netns = join(folder, 'netns-a')
  writeFileSync(netns, '')
  sh(`unshare --net=${netns} true`)
  expect(call('ADD')).toContain('10.9.0.')
  const device = podDevices()
  const before = await blocks()
  await startAgain()
  const proof = await proofOnce(({ fromPod }) => fromPod?.reason === '')
  expect(proof).toMatchObject({ state: 'Proven', asked: 4, answered: 4, fromPod: { asked: 2, answered: 2 }, failed: [] })
  expect(podDevices()).toBe(device)
  expect(await blocks()).toEqual(before)
  expect(agent.events('status.write-failed')).toEqual([])
})

test('what is lost of a service to pods alone is found from a pod, and not by the node', async () => {
  const proof = await withoutRows('np_frontends', () => proofOnce(({ state }) => state === 'Failed'))
  expect(proof).toMatchObject({ asked: 4, answered: 2, fromPod: { asked: 2, answered: 0 } })
  expect(proof?.failed).toEqual([
    `Service default/db, TCP ${SHOP}:80 from a pod: no answer, though its endpoints answer`,
    `Service default/names, UDP ${NAMES}:53 from a pod: no answer, though its endpoints answer`,
  ])
  await startAgain()
  expect(await proofOnce(({ state }) => state === 'Proven')).toMatchObject({ asked: 4, answered: 4, failed: [] })
})

test('a UDP service of any kind is asked from a pod, and its application hears nothing of it', async () => {
  for (const object of served('game', GAME, ['UDP', 9999, 9000])) await put(client, object)
  const lost = await withoutRows('np_frontends', () => proofOnce(({ state }) => state === 'Failed'))
  expect(lost?.failed).toContain(`Service default/game, UDP ${GAME}:9999 from a pod: not led to an endpoint, though these are reached`)
  await startAgain()
  expect(await proofOnce(({ state }) => state === 'Proven')).toMatchObject({ asked: 5, answered: 5, fromPod: { asked: 3, answered: 3 } })
  expect(said).toBe('')
  const hello = `require('node:dgram').createSocket('udp4').send('', 9000, '${OUTSIDE}', () => process.exit())`
  execFileSync(process.execPath, ['-e', hello])
  expect(await waitFor(() => (said === '' ? undefined : said), { timeoutMs: HANG_MS, everyMs: 20 }), 'it hears what comes').toBe(
    'game: 192.0.2.1\n',
  )
})

test('a client that is led away from its endpoint is found, where the service has affinity', async () => {
  for (const object of served('sticky', STICKY, ['TCP', 80, 8080])) await put(client, object)
  const named = { namespace: 'default', name: 'sticky' }
  const endpoints = [OUTSIDE, OTHER].map((address) => ({ addresses: [address], conditions: { ready: true } }))
  await client.patch({ apiVersion: 'v1', kind: 'Service', ...named }, { spec: { sessionAffinity: 'ClientIP' } }, { type: 'merge' })
  await client.patch({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...named }, { endpoints }, { type: 'merge' })
  let astray: Proof | undefined
  // a client may be led to the same endpoint by chance
  for (let times = 0; times < 5 && astray?.state !== 'Failed'; times++)
    astray = await withoutRows('np_affinity', () => proofOnce(({ state }) => state === 'Failed', 20_000))
  expect(astray?.failed).toEqual([
    `Service default/sticky, TCP ${STICKY}:80 from a pod: its affinity does not hold, a client was led from an endpoint to another`,
  ])
  await startAgain()
  expect(await proofOnce(({ state }) => state === 'Proven')).toMatchObject({ asked: 7, answered: 7, fromPod: { asked: 4, answered: 4 } })
})

test('policies that let pods send nothing make no failure', async () => {
  const deny = { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name: 'nothing' } } as const
  await put(client, { ...deny, spec: { selector: 'all()', types: ['Ingress', 'Egress'] } })
  await startAgain()
  const proven = await agent.event('mode.proven')
  expect(proven).toMatchObject({ answered: 3, fromPod: { asked: 0, answered: 0 } })
  await client.delete({ ...deny, name: 'nothing' })
})

test('an agent that is killed while it asks leaves nothing of its pod', async () => {
  const device = podDevices()
  servers.kill('SIGSTOP')
  await startAgain()
  const isThere = (): true | undefined => (podDevices() === device ? undefined : true)
  expect(await waitFor(isThere, { timeoutMs: 30_000, everyMs: 10 })).toBe(true)
  await agent.kill()
  const isGone = (): true | undefined => (podDevices() === device ? true : undefined)
  expect(await waitFor(isGone, { timeoutMs: HANG_MS, everyMs: 20 })).toBe(true)
  servers.kill('SIGCONT')
})
