// SPDX-License-Identifier: Apache-2.0
/** Policy and services for pods that another CNI plugin plugs in: point-to-point as providers do, and on a bridge as
 * flannel does. Layer: test. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { felix, node, service, slice } from '../agent/manifests.ts'
import { ChainedNode, NODE, OUTSIDE, type Fields } from './chained-node.ts'

let of: ChainedNode

const FAMILIES = ['v4', 'v6'] as const
const HOST_PORT = 8888

/** The first plugin of the list, and what its answer is to have. */
const KINDS: Readonly<Record<string, Fields>> = {
  ptp: { type: 'ptp', ipMasq: true },
  bridge: { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: true },
}

function theirs(kind: string): Fields {
  const ipam = {
    type: 'host-local',
    dataDir: join(of.machine.folder, 'host-local'),
    ranges: [[{ subnet: '10.3.0.0/24' }], [{ subnet: 'fd00:3::/64' }]],
    routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
  }
  const portmap = { type: 'portmap', capabilities: { portMappings: true }, snat: true }
  return { cniVersion: '0.4.0', name: 'cbr0', plugins: [{ ...KINDS[kind], ipam }, portmap] }
}

function podOf(name: string, ips: readonly string[] = []): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: ips.length === 0 ? 'Pending' : 'Running', podIPs: ips.map((ip) => ({ ip })) },
  }
}

const PODS = ['friend', 'stranger', 'closed', 'mute']

function policy(name: string, spec: Fields): object {
  const podSelector = { matchLabels: { app: name } }
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace: 'default' },
    spec: { podSelector, ...spec },
  }
}

const FRIENDS = [{ podSelector: { matchLabels: { app: 'friend' } } }]
const POLICIES = [
  policy('closed', { policyTypes: ['Ingress'], ingress: [{ from: FRIENDS }] }),
  policy('mute', { policyTypes: ['Egress'], egress: [{ to: FRIENDS }] }),
]

beforeEach(async () => {
  of = await ChainedNode.make()
  of.machine.put('nodes.json', [node('n1', NODE.v4, '10.3.0.0/24')])
  of.machine.put('felix.json', [felix(of.machine.cgroup)])
  of.machine.put(
    'pods.json',
    PODS.map((name) => podOf(name)),
  )
  of.machine.put('policies.json', POLICIES)
})

afterEach(async () => {
  await of[Symbol.asyncDispose]()
})

/** Which pod reaches which under {@link POLICIES}, by every family. */
function expectPolicies(): void {
  const asked = FAMILIES.flatMap((family) => {
    const to = (pod: string): string => of.address(pod, family)
    return [
      { what: 'friend to closed', from: 'friend', address: to('closed') },
      { what: 'stranger to closed', from: 'stranger', address: to('closed') },
      { what: 'outside to closed', from: 'outside', address: to('closed') },
      { what: 'outside to stranger', from: 'outside', address: to('stranger') },
      { what: 'the node to closed', from: undefined, address: to('closed') },
      { what: 'mute to friend', from: 'mute', address: to('friend') },
      { what: 'mute to stranger', from: 'mute', address: to('stranger') },
      { what: 'mute to outside', from: 'mute', address: OUTSIDE[family] },
      { what: 'stranger to outside', from: 'stranger', address: OUTSIDE[family] },
      { what: 'stranger to the node', from: 'stranger', address: NODE[family] },
    ]
  })
  const reached = of.pingsOf(asked)
  const refused = asked.flatMap(({ what }, at) => (reached[at] === true ? [] : [what]))
  expect(refused).toEqual(FAMILIES.flatMap(() => ['stranger to closed', 'outside to closed', 'mute to stranger', 'mute to outside']))
}

// the gate has the commonest
describe.each(ofMatrix(Object.keys(KINDS), ['bridge']))('%s', (kind) => {
  beforeEach(() => {
    of.writeTheirs(theirs(kind))
  })

  test('policy is in force both ways from the first packet on, after a restart, and follows changes [once]', async () => {
    const before = of.theirs
    const agent = await of.ready()
    for (const pod of PODS) {
      const { status, output } = of.add(pod)
      expect([status, output['cniVersion']], JSON.stringify(output)).toEqual([0, '0.4.0'])
      // what it may not reach it does not reach at once
      if (pod === 'mute') expect(of.pings(pod, of.address('stranger', 'v4'))).toBe(false)
      expect(of.ask('CHECK', pod)).toEqual({ status: 0, output: {} })
    }
    expectPolicies()
    expect(of.theirs).toBe(before)
    await agent.kill()
    expectPolicies()
    const next = await of.ready()
    expectPolicies()
    of.machine.put('policies.json', [])
    await expect.poll(() => of.pings('stranger', of.address('closed', 'v6'))).toBe(true)
    expect(next.events('pod.discovered')).toEqual([])
  }, 180_000)

  test('what a pod is denied with its first packet never leaves it [once]', async () => {
    await of.ready()
    of.add('stranger')
    of.add('mute')
    const heard = (): number => Number(of.machine.sh('ip netns exec stranger grep ^Udp: /proc/net/snmp | tail -1').split(' ')[2])
    const before = heard()
    of.machine.sh(`ip netns exec mute bash -c 'for i in $(seq 20); do echo x > /dev/udp/${of.address('stranger', 'v4')}/9; done'`)
    expect(heard()).toBe(before)
  })

  test('services, node ports, masquerade and host ports', async () => {
    of.machine.put('services.json', servicesOf())
    const agent = await of.ready()
    of.add('stranger')
    const mapping = { runtimeConfig: { portMappings: [{ hostPort: HOST_PORT, containerPort: 8080, protocol: 'tcp' }] } }
    of.add('friend', mapping)
    const address = of.address('friend', 'v4')
    of.machine.put('slices.json', [slice(address), external()])
    await of.serve('friend', 8080)
    await of.serve('stranger', 8080)
    await of.serve('outside', 8080)
    const client = of.address('stranger', 'v4')
    await expect.poll(() => of.get('stranger', '10.96.0.10', 80)).toBe(`friend ${client}`)
    of.settle()
    expect({
      'itself by its service': of.get('friend', '10.96.0.10', 80),
      'the node by a service': of.get(undefined, '10.96.0.10', 80),
      'outside by a node port': of.get('outside', NODE.v4, 30080),
      'a pod by a node port': of.get('stranger', NODE.v4, 30080),
      'out of the cluster': of.get('stranger', OUTSIDE.v4, 8080),
      'out of the cluster, IPv6': of.get('stranger', OUTSIDE.v6, 8080),
      'out of the cluster by a service': of.get('stranger', '10.96.0.11', 80),
      'straight in': of.get('outside', address, 8080),
      'outside by a host port': of.get('outside', NODE.v4, HOST_PORT),
    }).toEqual({
      'itself by its service': 'friend 10.96.0.10',
      'the node by a service': expect.stringMatching(/^friend /) as unknown,
      'outside by a node port': `friend ${OUTSIDE.v4}`,
      'a pod by a node port': `friend ${client}`,
      'out of the cluster': `outside ${NODE.v4}`,
      'out of the cluster, IPv6': `outside ${NODE.v6}`,
      'out of the cluster by a service': `outside ${NODE.v4}`,
      'straight in': `friend ${OUTSIDE.v4}`,
      'outside by a host port': `friend ${OUTSIDE.v4}`,
    })
    expect(agent.events('apply.failed')).toEqual([])
  })

  test('policy alone: no runtime calls us, no way and no tunnel is ours, and services that pods ask are still seen by policy [once]', async () => {
    of.machine.put('felix.json', [felix(of.machine.cgroup, { bpfEnabled: false })])
    of.machine.put('nodes.json', [node('n1', NODE.v4, '10.3.0.0/24'), node('n2', OUTSIDE.v4, '10.3.1.0/24')])
    of.machine.put('services.json', servicesOf())
    of.writeTheirs(theirs(kind))
    const files = (): string => of.machine.sh(`ls ${of.confDir} ${of.binDir}`)
    const before = [files(), of.theirs]
    const agent = of.machine.agent('--cni-none')
    await agent.event('dataplane.ready')
    for (const pod of PODS) of.add(pod)
    const known = (): string[] => agent.events('pod.discovered').map(({ pod }) => String(pod))
    const running = PODS.map((name) =>
      podOf(
        name,
        FAMILIES.map((family) => of.address(name, family)),
      ),
    )
    of.machine.put('pods.json', running)
    await expect.poll(() => known().sort()).toEqual(PODS.map((name) => `default/${name}`).sort())
    await expect.poll(() => of.pings('stranger', of.address('closed', 'v4'))).toBe(false)
    of.settle()
    expectPolicies()
    // of a service with one pod: mute may ask no other than friend
    for (const [server, answer] of [
      ['friend', `friend ${of.address('mute', 'v4')}`],
      ['stranger', undefined],
    ] as const) {
      of.machine.put('slices.json', [slice(of.address(server, 'v4'))])
      await of.serve(server, 8080)
      await expect.poll(() => of.get('closed', '10.96.0.10', 80)).toBe(`${server} ${of.address('closed', 'v4')}`)
      expect(of.get('mute', '10.96.0.10', 80)).toBe(answer)
    }
    expect(of.machine.sh('ip route show proto 80; ip -o link show type vxlan')).toBe('')
    expect([files(), of.theirs]).toEqual(before)
  }, 180_000)

  test('a pod is no more open by its host port than by its address [once]', async () => {
    await of.ready()
    of.add('stranger')
    of.add('friend')
    of.add('closed', { runtimeConfig: { portMappings: [{ hostPort: HOST_PORT, containerPort: 8080, protocol: 'tcp' }] } })
    await of.serve('closed', 8080)
    const address = of.address('closed', 'v4')
    expect(of.get('friend', address, 8080)).toBe(`closed ${of.address('friend', 'v4')}`)
    expect(of.get('stranger', address, 8080)).toBeUndefined()
    expect(of.get('outside', NODE.v4, HOST_PORT)).toBeUndefined()
    expect(of.get('stranger', NODE.v4, HOST_PORT)).toBeUndefined()
  })

  test('DEL leaves nothing, of pods that we never heard of either, and ADD says why it cannot', async () => {
    const agent = await of.ready()
    for (const pod of ['friend', 'stranger']) of.add(pod)
    expect(saved()).toEqual(['friend-1.json', 'stranger-1.json'])
    for (const pod of ['friend', 'stranger']) expect(of.del(pod).map(({ status }) => status)).toEqual([0, 0, 0])
    expect(saved()).toEqual([])
    expect(readdirSync(join(of.machine.folder, 'host-local', 'cbr0')).filter((name) => /^(10|fd)/.test(name))).toEqual([])
    expect(of.machine.sh('ip -o link show type veth').match(/veth\w+|eth0/g)).toEqual(['eth0'])
    expect(of.add('ghost', { timeoutSeconds: 1 }).output).toMatchObject({
      code: 11,
      msg: expect.stringContaining('no source has Pod') as unknown,
    })
    expect(saved()).toEqual([])
    of.add('closed')
    expect(of.ask('GC', 'closed', { 'cni.dev/valid-attachments': [] }).status).toBe(0)
    expect([saved(), of.ask('CHECK', 'closed').output['code']]).toEqual([[], 3])
    await agent.kill()
    expect(of.add('friend').output).toMatchObject({ code: 11 })
  })

  test('pods that were there before the agent are found, also such that never spoke, with the plugin in no list', async () => {
    for (const pod of PODS) of.add(pod)
    of.machine.put(
      'pods.json',
      PODS.map((pod) =>
        podOf(
          pod,
          FAMILIES.map((family) => of.address(pod, family)),
        ),
      ),
    )
    const agent = of.machine.agent()
    await agent.event('dataplane.ready')
    await agent.event('pod.discovered', PODS.length)
    await expect.poll(() => of.pings('stranger', of.address('closed', 'v4'))).toBe(false)
    expectPolicies()
    expect(of.types()).not.toContain('netplane-cni')
    await agent.kill()
    const next = of.machine.agent()
    await next.event('dataplane.ready')
    expect(next.events('hook.detached')).toEqual([])
    expect(next.events('hook.attached')).toEqual([])
  })
})

describe('the list', () => {
  const ours = (): string => join(of.confDir, '00-00-netplane.conflist')

  beforeEach(() => {
    of.writeTheirs(theirs('ptp'))
  })

  test('follows theirs, and goes with it or with --cleanup', async () => {
    const agent = await of.ready()
    expect(of.types()).toEqual(['ptp', 'portmap', 'netplane-cni'])
    of.writeTheirs({ cniVersion: '0.3.1', name: 'other', plugins: [{ type: 'bridge' }] })
    await agent.until('their new list', () => of.types()[0] === 'bridge')
    writeFileSync(join(of.confDir, '10-theirs.conflist'), '{ half')
    await agent.event('cni.installed.failed')
    expect(of.types()).toEqual(['bridge', 'netplane-cni'])
    rmSync(join(of.confDir, '10-theirs.conflist'))
    await agent.until('no list', () => !existsSync(ours()))
    of.writeTheirs(theirs('ptp'))
    await agent.until('a list', () => existsSync(ours()))
    await agent.kill()
    expect(of.machine.cleanup().output).toContain(`removed file ${ours()}`)
    expect(readdirSync(of.confDir)).toEqual(['10-theirs.conflist'])
  })
})

function saved(): string[] {
  const folder = join(of.machine.state, 'cni', 'sandboxes')
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

/** One with the pod, and one that leads out of the cluster. */
function servicesOf(): unknown[] {
  const spec = { clusterIP: '10.96.0.11', clusterIPs: ['10.96.0.11'], ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }] }
  return [service, { ...service, metadata: { name: 'far', namespace: 'default' }, spec }]
}

function external(): unknown {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'far-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'far' } },
    addressType: 'IPv4',
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [OUTSIDE.v4], conditions: { ready: true } }],
  }
}
