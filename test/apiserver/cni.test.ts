// SPDX-License-Identifier: Apache-2.0
/** Pods by CNI on a node whose objects, and whose blocks, are in a real API server. Layer: test. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { isObject } from '#lib/base/object.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { CONFLISTS } from '#agent/cni/install/conflist.ts'
import { waitFor } from '../../lab/wait.ts'
import { felix } from '../kernel/agent/manifests.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { AgentProcess } from '../../testkit/base/scratch-node.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { withinBestOfThree } from '../support/steady/best-of.ts'
import { put } from './definitions.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { isDefinition, manifest } from '../../testkit/kubernetes/manifest.ts'
import { programCommand } from '../../testkit/base/program.ts'

const BUILD_MS = 30 * 60_000

let folder = ''
let cgroup = ''
let cluster: LoopbackCluster
let client: ApiClient
const agents: AgentProcess[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-cni-'))
  cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  sh('ip link add eth0 type veth peer name wire0; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up; ip link set wire0 up')
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const definition of manifest().filter(isDefinition)) await put(client, definition)
  const pool = { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'pods' }, spec: { cidr: '10.9.0.0/24' } }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'default' } }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name: 'a' } }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }
  const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] }
  for (const object of [node, account, { ...pod, spec }, pool, felix(cgroup)]) await put(client, object)
  await setAddress('192.0.2.1')
}, BUILD_MS)

afterAll(async () => {
  for (const agent of agents) await agent.kill()
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  execFileSync(NODEJS, [...PROGRAM, '--cleanup', '--state-dir', join(folder, 'state'), '--cgroup', cgroup])
  rmdirSync(cgroup)
  sh(`umount ${netns('a')}`)
  rmSync(folder, { recursive: true })
})

const [NODEJS = '', ...PROGRAM] = programCommand('agent')

/** Nothing of the node has it. */
const ELSEWHERE = '192.0.2.2'

/** What the cluster says of the node. */
async function setAddress(address: string): Promise<void> {
  const status = { addresses: [{ type: 'InternalIP', address }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { status }, { type: 'merge', subresource: 'status' })
}

function sh(script: string): void {
  execFileSync('sh', ['-ec', script])
}

function netns(id: string): string {
  return join(folder, `netns-${id}`)
}

async function ready(): Promise<AgentProcess> {
  const state = ['--state-dir', join(folder, 'state'), '--health-port', '0']
  const cni = ['--cni-conf-dir', join(folder, 'net.d'), '--cni-bin-dir', join(folder, 'bin')]
  const args = [...PROGRAM, '--node', 'n1', '--kubeconfig', cluster.kubeconfig(), ...state, ...cni]
  const agent = new AgentProcess(spawn(NODEJS, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
  agents.push(agent)
  await agent.event('cni.listening')
  const installed = (): true | undefined => (existsSync(join(folder, 'net.d', CONFLISTS.own)) ? true : undefined)
  if ((await waitFor(installed, { timeoutMs: 30_000, everyMs: 50 })) === undefined) throw new Error('no network configuration')
  return agent
}

function call(command: string, more: object = {}): Readonly<Record<string, unknown>> {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: 'a-1',
    CNI_NETNS: netns('a'),
    CNI_IFNAME: 'eth0',
    CNI_ARGS: 'K8S_POD_NAMESPACE=default;K8S_POD_NAME=a',
    CNI_PATH: join(folder, 'bin'),
  }
  const config = { cniVersion: '1.0.0', name: 'netplane', type: 'netplane-cni', socket: join(folder, 'state', 'cni.sock'), ...more }
  const { stdout } = spawnSync(join(packageRoot(), 'build', 'netplane-cni'), { env, input: JSON.stringify(config) })
  const answer: unknown = stdout.length === 0 ? {} : JSON.parse(stdout.toString())
  return isObject(answer) ? answer : {}
}

async function holders(): Promise<string[]> {
  return (await client.list(IP_BLOCK)).flatMap((object) =>
    [...parseIPBlock({ ...object }).held.values()].map(({ containerId }) => containerId),
  )
}

test('a pod gets an address of a block that the cluster knows of', async () => {
  writeFileSync(netns('a'), '')
  sh(`unshare --net=${netns('a')} true`)
  const agent = await ready()
  expect(call('ADD')).toMatchObject({ ips: [{ address: expect.stringMatching(/^10\.9\.0\.\d+\/32$/) as unknown }] })
  expect(await holders()).toEqual(['a-1'])
  const network = { ...NODE_NETWORK, name: 'n1' }
  const spec = { addresses: ['192.0.2.1'], blocks: [expect.stringMatching(/^10\.9\.0\.\d+\/26$/)] }
  expect(await client.get(network)).toMatchObject({ spec })
  // a NodeNetwork that was deleted is written again
  await client.delete(network)
  await expect.poll(() => client.get(network).catch(() => undefined), { interval: 200 }).toMatchObject({ spec })
  sh(`nsenter --net=${netns('a')} ping -c 1 -W 2 192.0.2.1`)
  await agent.kill()
})

test('the next agent gives back at once what the one before had forgotten', async () => {
  // as if it had died between the lease and the disk
  rmSync(join(folder, 'state', 'cni', 'sandboxes'), { recursive: true })
  expect(await holders()).toEqual(['a-1'])
  const next = await ready()
  // not only in its next look, for it may be killed before that as well
  const none = async (): Promise<true | undefined> => ((await holders()).length === 0 ? true : undefined)
  expect(await waitFor(none, { timeoutMs: HANG_MS, everyMs: 100 })).toBe(true)
  expect(call('ADD')).toMatchObject({ ips: [{}] })
  expect(call('DEL')).toEqual({})
  expect(await holders()).toEqual([])
  await next.kill()
})

test('while the API server writes nothing down a pod hears that in time, one that goes is gone, and all is well when it writes again', async () => {
  const agent = await ready()
  expect(call('ADD')).toMatchObject({ ips: [{}] })
  cluster.signal('etcd', 'SIGSTOP')
  try {
    await withinBestOfThree(15_000, () => {
      const began = performance.now()
      expect(call('DEL')).toEqual({})
      // the second finds the first at it still
      for (let times = 0; times < 2; times++)
        expect(call('ADD', { timeoutSeconds: 3 })).toMatchObject({
          code: 11,
          msg: 'not ready in time: its address is not written down yet',
        })
      return Promise.resolve(performance.now() - began)
    })
  } finally {
    cluster.signal('etcd', 'SIGCONT')
  }
  expect(call('ADD')).toMatchObject({ ips: [{}] })
  expect(await holders()).toEqual(['a-1'])
  expect(call('DEL')).toEqual({})
  expect(await holders()).toEqual([])
  await agent.kill()
})

test('while the other nodes cannot hear where this one is no pod begins', async () => {
  const agent = await ready()
  const admission = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: 'unheard' } }
  const rules = [{ apiGroups: ['netplane.io'], apiVersions: ['v3'], operations: ['CREATE', 'UPDATE'], resources: ['nodenetworks'] }]
  const validations = [{ expression: `!('${ELSEWHERE}' in object.spec.addresses)` }]
  await put(client, {
    ...{ ...admission, kind: 'ValidatingAdmissionPolicy' },
    spec: { failurePolicy: 'Fail', matchConstraints: { resourceRules: rules }, validations },
  })
  await put(client, {
    ...{ ...admission, kind: 'ValidatingAdmissionPolicyBinding' },
    spec: { policyName: 'unheard', validationActions: ['Deny'] },
  })
  const refused = async (): Promise<boolean> => {
    const probe = { ...NODE_NETWORK, name: 'probe' }
    const made = client.create({ ...NODE_NETWORK, metadata: { name: 'probe' }, spec: { addresses: [ELSEWHERE] } })
    return await made.then(
      () => client.delete(probe).then(() => false),
      () => true,
    )
  }
  await expect.poll(refused, { interval: 200 }).toBe(true)
  await setAddress(ELSEWHERE)
  const unheard = 'not ready in time: other nodes have not heard of this one'
  await expect.poll(() => call('ADD', { timeoutSeconds: 1 })).toMatchObject({ code: 11, msg: unheard })
  await setAddress('192.0.2.1')
  expect(call('ADD')).toMatchObject({ ips: [{}] })
  expect(call('DEL')).toEqual({})
  await agent.kill()
})
