// SPDX-License-Identifier: Apache-2.0
/** A whole agent with the rights that deploy/ gives, and what kubectl shows of its node. Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { waitFor } from '../../lab/wait.ts'
import { felix } from '../kernel/agent/manifests.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { AgentProcess } from '../../testkit/base/scratch-node.ts'
import { tokenFor } from './accounts.ts'
import { put } from './definitions.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { manifest, NAME, NAMESPACE } from '../../testkit/kubernetes/manifest.ts'
import { programCommand } from '../../testkit/base/program.ts'

const BUILD_MS = 30 * 60_000
const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web' } as const
const IFACE = workloadInterface(POD)
const [NODEJS = '', ...PROGRAM] = programCommand('agent')
const FELIX = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' } as const
const GNP = 'globalnetworkpolicies.netplane.io'

let folder = ''
let cgroup = ''
let programs = ''
let cluster: LoopbackCluster
let client: ApiClient
let agent: AgentProcess

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-agent-status-'))
  cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  sh('ip link add eth1 type veth peer name wire1; ip addr add 198.51.100.1/24 dev eth1; ip link set eth1 up; ip link set wire1 up')
  programs = await kubernetesPrograms()
  cluster = await LoopbackCluster.start({ programs, folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const object of manifest()) if (object.kind !== 'DaemonSet') await put(client, object)
  await put(client, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } })
  await put(client, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } })
  const address = { addresses: [{ type: 'InternalIP', address: '198.51.100.1' }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { status: address }, { type: 'merge', subresource: 'status' })
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  await put(client, { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: POD.namespace, name: POD.name }, spec })
  const status = { phase: 'Running', podIP: '10.1.0.7', podIPs: [{ ip: '10.1.0.7' }] }
  await client.patch(POD, { status }, { type: 'merge', subresource: 'status' })
  await put(client, felix(cgroup))
  await put(client, {
    apiVersion: 'netplane.io/v3',
    kind: 'GlobalNetworkPolicy',
    metadata: { name: 'bad' },
    spec: { selector: "app ==== 'web'", ingress: [{ action: 'Allow' }] },
  })
  agent = start(await accountKubeconfig())
  await agent.event('dataplane.ready')
}, BUILD_MS)

afterAll(async () => {
  await agent.kill()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  execFileSync(NODEJS, [...PROGRAM, '--cleanup', '--state-dir', join(folder, 'state'), '--cgroup', cgroup])
  rmdirSync(cgroup)
  // other files have theirs
  sh(`ip link del eth1; ip link del ${IFACE}`)
  rmSync(folder, { recursive: true })
})

function sh(script: string): void {
  execFileSync('sh', ['-ec', script])
}

async function accountKubeconfig(): Promise<string> {
  const account = await client.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace: NAMESPACE, name: NAME })
  return cluster.kubeconfig({ token: tokenFor(account, join(folder, 'cluster', 'accounts.key'), 3600) })
}

function start(kubeconfig: string): AgentProcess {
  const flags = ['--node', 'n1', '--kubeconfig', kubeconfig, '--state-dir', join(folder, 'state'), '--health-port', '0']
  return new AgentProcess(spawn(NODEJS, [...PROGRAM, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] }))
}

function kubectl(...args: readonly string[]): string {
  return execFileSync(join(programs, 'kubectl'), ['--kubeconfig', cluster.kubeconfig(), ...args], { encoding: 'utf8' })
}

function file(object: unknown): string {
  const path = join(folder, 'object.json')
  writeFileSync(path, JSON.stringify(object))
  return path
}

/** What kubectl shows, once it shows this; what it shows instead when it does not in time. */
async function shown(args: readonly string[], text: RegExp): Promise<string> {
  let last = ''
  const found = (): Promise<true | undefined> => {
    last = kubectl(...args)
    return Promise.resolve(text.test(last) ? true : undefined)
  }
  await waitFor(found, { timeoutMs: 30_000, everyMs: 300 })
  return last
}

function conditionPath(type: string): string {
  return `jsonpath={.status.conditions[?(@.type=="${type}")]['status','reason','message']}`
}

test('the node has a network', async () => {
  const args = ['get', 'node', 'n1', '-o', conditionPath('NetworkUnavailable')]
  expect(await shown(args, /NetplaneIsUp/)).toBe('False NetplaneIsUp Netplane has programmed this node')
})

test('other nodes hear where a node is, as its Node is at present, also after its NodeNetwork was deleted', async () => {
  const args = ['get', 'nodenetwork', 'n1', '--ignore-not-found', '-o', 'jsonpath={.spec}']
  const interfaces = '[{"addresses":["198.51.100.1"],"name":"eth1"}]'
  const spec = (labels: string): string =>
    `{"addresses":["198.51.100.1"],"interfaces":${interfaces},"labels":${labels},"podCIDRs":[],"subnets":["198.51.100.0/24"]}`
  expect(await shown(args, /198/)).toBe(spec('{}'))
  kubectl('label', 'node', 'n1', 'team=a')
  expect(await shown(args, /team/)).toBe(spec('{"team":"a"}'))
  kubectl('label', 'node', 'n1', 'team-')
  expect(await shown(args, /"labels":\{\}/)).toBe(spec('{}'))
  kubectl('delete', 'nodenetwork', 'n1')
  expect(await shown(args, /198/)).toBe(spec('{}'))
})

test('the node says in which mode it serves and that services were answered; another mode is taken up at once', async () => {
  const args = ['get', 'nodenetwork', 'n1', '-o', 'jsonpath={.status}']
  const said = async (mode: string): Promise<unknown> => {
    const status: unknown = JSON.parse(await shown(args, new RegExp(`"proof":.*"mode":"${mode}"`)))
    return status
  }
  const proven = (mode: string) => ({ dataplane: { mode }, proof: { mode, state: 'Proven', failed: [] }, kubeProxy: 'Absent' })
  expect(await said('BPF')).toMatchObject({ version: packageVersion(), ...proven('BPF') })
  kubectl('patch', 'felixconfiguration', 'default', '--type=merge', '-p', '{"spec":{"bpfEnabled":false}}')
  const standard = await said('Standard')
  expect(standard).toMatchObject({ ...proven('Standard'), dataplane: { configurations: { default: 2 } } })
  // this node's own object goes first
  kubectl('apply', '-f', file({ ...FELIX, metadata: { name: 'node.n1' }, spec: { bpfEnabled: true } }))
  expect(await said('BPF')).toMatchObject({ ...proven('BPF'), dataplane: { configurations: { default: 2, 'node.n1': 1 } } })
  kubectl('delete', 'felixconfiguration', 'node.n1')
  expect(await said('Standard')).toMatchObject(proven('Standard'))
  kubectl('patch', 'felixconfiguration', 'default', '--type=merge', '-p', '{"spec":{"bpfEnabled":null}}')
  expect(await said('BPF')).toMatchObject(proven('BPF'))
  // its log may come later than what it wrote
  const modes = (): unknown => agent.events('mode.set').map(({ mode }) => mode)
  await expect.poll(modes).toEqual(['BPF', 'Standard', 'BPF', 'Standard', 'BPF'])
})

test('a pod that is not programmed says why, and then that it is', async () => {
  const args = ['get', 'pod', POD.name, '-o', conditionPath('netplane.io/Programmed')]
  expect(await shown(args, /False/)).toBe(`False NotProgrammed ${IFACE} has not been seen yet`)
  sh(`ip link add ${IFACE} type veth peer name pod0; ip link set ${IFACE} up; ip link set pod0 up`)
  expect(await shown(args, /True/)).toBe('True Programmed')
  kubectl('wait', '--for=condition=netplane.io/Programmed', `pod/${POD.name}`, '--timeout=10s')
})

test('a refused policy is described with field, reason and what became of it', async () => {
  const text = await shown(['describe', GNP, 'bad'], /Refused/)
  expect(text.slice(text.indexOf('Events:'))).toMatch(
    /Warning +Refused .*netplane-agent +spec\.selector: not a selector: .*; nothing of it is in force/,
  )
})

test('a policy whose tier is not there is described as well', async () => {
  const metadata = { name: 'lost.web' }
  await put(client, { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata, spec: { tier: 'lost', selector: 'all()' } })
  expect(await shown(['describe', GNP, 'lost.web'], /NoTier/)).toMatch(/Warning +NoTier .*there is no Tier lost/)
})

test('the cluster has its ClusterInformation', async () => {
  const args = ['get', 'clusterinfo', 'default', '--ignore-not-found']
  expect(await shown(args, /default/)).toMatch(/default +v\d+\.\d+\.\d+/)
})

test('nothing was refused to the agent, and nothing is written again', async () => {
  expect(agent.events('status.write-failed')).toEqual([])
  const versions = async (): Promise<readonly string[]> => {
    const of = (kind: string, fieldSelector = '') => client.list({ apiVersion: 'v1', kind }, { fieldSelector })
    const all = [
      ...(await client.list(NODE_NETWORK)),
      ...(await of('Node')),
      ...(await of('Pod')),
      ...(await of('Event', 'source=netplane-agent')),
    ]
    return all.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion ?? ''}`)
  }
  const before = await versions()
  await agent.stop()
  agent = start(await accountKubeconfig())
  await agent.event('dataplane.ready')
  // what it tells of this shows that it has looked at all else
  const metadata = { name: 'lost.again' }
  await put(client, { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata, spec: { tier: 'lost', selector: 'all()' } })
  await shown(['describe', GNP, 'lost.again'], /NoTier/)
  const after = await versions()
  expect(after.filter((text) => !text.startsWith('Event lost.again'))).toEqual(before)
})
