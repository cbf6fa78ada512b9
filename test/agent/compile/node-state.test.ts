// SPDX-License-Identifier: Apache-2.0
/** What a node wants besides tables. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import type { DesiredNode } from '#agent/compile/desired.ts'
import { Attachments, compileNode } from '#agent/compile/node-state.ts'
import type { CompileSettings } from '#agent/compile/settings.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { clusterPolicy, node, pod, pool, snapshotOf } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'
import { showNode } from '../../support/show.ts'
import { World } from './world.ts'

const settings = defaultConfig.compile

interface Of {
  readonly settings?: Partial<CompileSettings>
  readonly makesRoutes?: boolean
}

function compiled(manifests: readonly Manifest[], of: Of): DesiredNode {
  const snapshot = snapshotOf(manifests)
  return compileNode({
    node: 'n1',
    snapshot,
    pools: snapshot.pools,
    settings: { ...settings, ...of.settings },
    makesRoutes: of.makesRoutes,
    healthChecks: [],
    attachments: new Attachments(),
  })
}

function compile(manifests: readonly Manifest[], of: Of = {}): string[] {
  return showNode(compiled(manifests, of)).split('\n')
}

const sysctls = ['  sysctl net/ipv4/ip_forward=1', '  sysctl net/ipv6/conf/all/forwarding=1']

test('a whole node', () => {
  const veth = (name: string): string => workloadInterface({ namespace: 'default', name })
  const workloads = ['a', 'b'].map((name) => `  workload ${veth(name)} default/${name}`).sort()
  expect(
    compile([
      node('n1', { addresses: ['192.168.0.1', 'fd01::1'], podCIDRs: ['10.0.1.0/24'] }),
      node('n2', { addresses: ['192.168.0.2', 'fd01::2'], podCIDRs: ['10.0.2.0/24', 'fd02:2::/64'] }),
      node('n3', { addresses: ['192.168.0.3'], podCIDRs: ['10.0.3.0/24', 'fd02:3::/64'] }),
      pod('a', { node: 'n1', ips: ['10.0.1.1'] }),
      pod('b', { node: 'n1', phase: 'Pending' }),
      pod('host', { node: 'n1', ips: ['192.168.0.1'], hostNetwork: true }),
      pod('done', { node: 'n1', ips: ['10.0.1.2'], phase: 'Succeeded' }),
      pod('elsewhere', { node: 'n2', ips: ['10.0.2.1'] }),
    ]),
  ).toEqual([
    'node 192.168.0.1 fd01::1',
    '  tunnel vni 20048 port 4789',
    '  connect-time tcp',
    ...workloads,
    '  host 192.168.0.1 fd01::1',
    '  route 10.0.2.0/24 via 192.168.0.2',
    '  route 10.0.3.0/24 via 192.168.0.3',
    '  route fd02:2::/64 via fd01::2',
    ...sysctls,
  ])
})

const V6_AS_IT_WAS = '  sysctl net/ipv6/conf/all/forwarding as it was'

test('a node that is not known yet', () => {
  expect(compile([])).toEqual(['node 0.0.0.0 ::', '  tunnel vni 20048 port 4789', '  connect-time tcp', '  host ', V6_AS_IT_WAS])
})

test.each([
  ['ranges of nodes', [node('n2', { podCIDRs: ['10.0.2.0/24'] })], [sysctls[0], V6_AS_IT_WAS]],
  ['ranges of nodes of IPv6', [node('n2', { podCIDRs: ['fd02:2::/64'] })], [sysctls[1]]],
  ['a pod of the node', [pod('a', { node: 'n1', ips: ['10.0.1.1', 'fd02::1'] })], sysctls],
  ['a pod of another node', [pod('a', { node: 'n2', ips: ['fd02::1'] })], [V6_AS_IT_WAS]],
  ['a pod in the network of the node', [pod('a', { node: 'n1', ips: ['fd01::1'], hostNetwork: true })], [V6_AS_IT_WAS]],
  ['addresses of nodes', [node('n1', { addresses: ['192.168.0.1', 'fd01::1'] })], [V6_AS_IT_WAS]],
  ['pools', [pool('p', { cidr: 'fd05::/48' })], [sysctls[1]]],
] as const)('the node forwards the families that pods have, as told by %s', (_, manifests, wanted) => {
  expect(compile(manifests).filter((line) => line.includes('sysctl'))).toEqual(wanted)
})

describe('routes', () => {
  test('one range, two nodes: the first name has it', () => {
    const twins = ['n3', 'n2'].map((name, at) => node(name, { addresses: [`192.168.0.${at + 2}`], podCIDRs: ['10.0.2.0/24'] }))
    expect(compile(twins).filter((line) => line.includes('route'))).toEqual(['  route 10.0.2.0/24 via 192.168.0.3'])
  })

  test("no tunnel in Standard mode where another plugin makes ways: node ports are kube-proxy's", () => {
    const nodes = ['n1', 'n2'].map((name, at) => node(name, { addresses: [`192.168.0.${at + 1}`] }))
    const tunnelled = (makesRoutes: boolean, mode: 'BPF' | 'Standard'): boolean =>
      compiled(nodes, { makesRoutes, settings: { services: { ...settings.services, mode } } }).tunnelled
    expect(tunnelled(false, 'Standard')).toBe(false)
    expect([tunnelled(false, 'BPF'), tunnelled(true, 'Standard'), tunnelled(true, 'BPF')]).toEqual([true, true, true])
  })

  test('none where another CNI plugin makes them', () => {
    const other = node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.2.0/24'] })
    expect(compile([other], { makesRoutes: false }).filter((line) => line.includes('route'))).toEqual([])
    expect(compiled([other], { makesRoutes: false }).host.elsewhere.map(formatAddr)).toEqual(['10.0.2.0'])
    expect(compiled([other], {}).host.elsewhere).toEqual([])
  })

  test('never by our own address', () => {
    const stale = node('old', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.2.0/24'] })
    expect(compile([node('n1', { addresses: ['192.168.0.1'] }), stale]).some((line) => line.includes('route'))).toBe(false)
  })
})

test('settings come through', () => {
  const lines = compile([], {
    settings: { dataInterfacePattern: 'eth.*', knobs: { ...settings.knobs, connectTcp: true, connectUdp: true } },
  })
  expect(lines).toEqual(expect.arrayContaining(['  connect-time tcp udp', '  host /eth.*/']))
  expect(compile([], { settings: { knobs: { ...settings.knobs, connectTcp: false } } })).toContain('  connect-time off')
  const desired = compileNode({
    node: 'n1',
    snapshot: snapshotOf([]),
    pools: new Map(),
    settings: { ...settings, cgroup: '/sys/fs/cgroup/x' },
    healthChecks: [],
    attachments: new Attachments(),
  })
  expect(desired).toMatchObject({
    cgroup: '/sys/fs/cgroup/x',
    mapSizes: { conntrack: 512_000, frontends: 65_536, backends: 262_144, affinity: 16_384, addrs: 196_608, live: 65_536 },
  })
  expect(desired.knobs).toMatchObject({
    natPorts: { from: 20_000, to: 29_999 },
    dsr: false,
    sourceCheck: 0,
    strayService: 1,
    podToHost: 0,
    hostPolicy: false,
    untracked: false,
    clusterPolicy: false,
    overlay: false,
  })
  const [before, policy] = [pod('web', { node: 'n1' }), clusterPolicy('admin')]
  expect(compiled([before, policy], {}).knobs.clusterPolicy).toBe(true)
  const world = new World(before)
  world.compile()
  world.put(policy)
  expect(world.compile().node?.knobs.clusterPolicy).toBe(true)
  expect(desired.knobs.timeouts).toEqual({
    tcpSyn: 60_000,
    tcpOpen: 432_000_000,
    tcpFin: 120_000,
    tcpRst: 10_000,
    udp: 30_000,
    udpStream: 120_000,
    icmp: 30_000,
  })
})
