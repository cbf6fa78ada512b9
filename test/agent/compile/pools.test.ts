// SPDX-License-Identifier: Apache-2.0
/** Pools of addresses and what the settings say of nodes, in rows. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { node, nodeNetwork, pod, pool } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'
import { showChange, showFragment } from '../../support/show.ts'
import { cluster, World } from './world.ts'

describe('pools', () => {
  const two = (of: object): Manifest[] => [
    node('n1', { addresses: ['192.168.0.1'] }),
    nodeNetwork('n1', { subnets: ['192.168.0.0/24'] }),
    node('n2', { addresses: ['192.168.0.2', 'fd01::2'], podCIDRs: ['10.0.2.0/24', 'fd02:2::/64'] }),
    node('n3', { addresses: ['192.168.9.3'], podCIDRs: ['10.0.3.0/24'] }),
    pod('a', { node: 'n1', ips: ['10.0.1.1', 'fd02:1::1'] }),
    pool('pods', { cidr: '10.0.0.0/16', ...of }),
  ]
  const lines = (...manifests: readonly Manifest[]): string[] =>
    showChange(new World(...manifests).compile())
      .split('\n')
      .map((line) => line.trim())

  test('are never masqueraded to; their pods are to the rest when they say so', () => {
    const veth = workloadInterface({ namespace: 'default', name: 'a' })
    expect(lines(...two({ natOutgoing: true, disabled: true }))).toEqual(
      expect.arrayContaining(['inside range 10.0.0.0/16', `10.0.1.1 pod ${veth} masquerade`, `fd02:1::1 pod ${veth}`]),
    )
    expect(lines(...two({}))).toContain(`10.0.1.1 pod ${veth}`)
  })

  test('in the tunnel to all nodes, or to those beyond a router', () => {
    const tunnelled = (of: object): string[] => lines(...two(of)).filter((line) => line.includes('/24 ') || line.includes('/64 '))
    expect(tunnelled({ vxlanMode: 'Always' })).toEqual([
      '10.0.2.0/24 at 192.168.0.2',
      '10.0.3.0/24 at 192.168.9.3',
      'route 10.0.2.0/24 via 192.168.0.2 in the tunnel',
      'route 10.0.3.0/24 via 192.168.9.3 in the tunnel',
      'route fd02:2::/64 via fd01::2',
    ])
    expect(tunnelled({ vxlanMode: 'CrossSubnet' })).toEqual([
      '10.0.3.0/24 at 192.168.9.3',
      'route 10.0.2.0/24 via 192.168.0.2',
      'route 10.0.3.0/24 via 192.168.9.3 in the tunnel',
      'route fd02:2::/64 via fd01::2',
    ])
    expect(tunnelled({}).filter((line) => line.includes('tunnel'))).toEqual([])
  })

  test('blocks that a node has taken are reached as its own range is', () => {
    const blocks = nodeNetwork('n4', { addresses: ['192.168.0.4'], podCIDRs: ['10.0.4.0/24'], blocks: ['10.0.9.64/26', '10.0.4.7/32'] })
    expect(lines(blocks, ...two({ vxlanMode: 'Always' })).filter((line) => line.includes('192.168.0.4 in'))).toEqual([
      'route 10.0.4.0/24 via 192.168.0.4 in the tunnel',
      'route 10.0.4.7/32 via 192.168.0.4 in the tunnel',
      'route 10.0.9.64/26 via 192.168.0.4 in the tunnel',
    ])
  })

  test('a node of an older version has its own ends of the tunnel, this node none', () => {
    const macs = { vxlanTunnelMACAddr: '66:00:5e:00:53:01', vxlanTunnelMACAddrV6: '66:00:5e:00:53:02' }
    const older = nodeNetwork('n2', { addresses: ['192.168.0.2', 'fd01::2'], ...macs })
    const vteps = (...manifests: readonly Manifest[]): string[] =>
      lines(...manifests, ...two({})).filter((line) => line.includes('takes frames'))
    expect(vteps(older)).toEqual(['192.168.0.2 takes frames for 66:00:5e:00:53:01', 'fd01::2 takes frames for 66:00:5e:00:53:02'])
    expect([vteps(), vteps(nodeNetwork('n1', { addresses: ['192.168.0.1'], ...macs }))]).toEqual([[], []])
  })

  test('programs look for ends of the tunnel where another node has one', () => {
    const vteps = (name: string | undefined): boolean | undefined => {
      const older = name === undefined ? [] : [nodeNetwork(name, { addresses: [], vxlanTunnelMACAddr: '66:00:5e:00:53:01' })]
      return new World(...older, node('n1', { addresses: ['192.168.0.1'] })).compile().node?.knobs.vteps
    }
    expect([vteps(undefined), vteps('n1'), vteps('n2')]).toEqual([false, false, true])
  })

  test('of nested pools the smallest counts', () => {
    const inner = pool('inner', { cidr: '10.0.2.0/24' })
    expect(lines(...two({ vxlanMode: 'Always' }), inner).filter((line) => line.includes(' at '))).toEqual(['10.0.3.0/24 at 192.168.9.3'])
  })

  test('without knowing our subnets every node is beyond a router', () => {
    const [self = {}, , ...others] = two({ vxlanMode: 'CrossSubnet' })
    expect(lines(self, ...others)).toContain('10.0.2.0/24 at 192.168.0.2')
  })

  test('two nodes with one range: the first has it', () => {
    const twin = node('n4', { addresses: ['192.168.0.4'], podCIDRs: ['10.0.2.0/24'] })
    const world = new World(...two({ vxlanMode: 'Always' }), twin)
    expect(showChange(world.compile())).toContain('10.0.2.0/24 at 192.168.0.2')
    expect(world.conflicts).toEqual(['Node n4: 10.0.2.0/24 already belongs to Node/n2, in part'])
  })
})

describe('without pools, where pods are ours', () => {
  const nodes = [
    node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24', 'fd02:1::/64'] }),
    nodeNetwork('n1', { subnets: ['192.168.0.0/24'] }),
    node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.2.0/24'] }),
    node('n3', { addresses: ['192.168.9.3'], podCIDRs: ['10.0.3.0/24'] }),
  ]
  const one = pod('a', { node: 'n1', ips: ['10.0.1.1', 'fd02:1::1'] })
  const veth = workloadInterface({ namespace: 'default', name: 'a' })
  const world = (servesPods: boolean): World => {
    const made = new World(...nodes, one)
    made.input = { ...made.input, servesPods }
    return made
  }
  const linesOf = (made: World): string[] =>
    showChange(made.compile())
      .split('\n')
      .map((line) => line.trim())

  test('pods reach the world as their node, and nodes beyond a router in the tunnel', () => {
    const lines = linesOf(world(true))
    expect(lines.filter((line) => line.startsWith('inside'))).toEqual([
      'inside range 10.0.1.0/24',
      'inside range fd02:1::/64',
      'inside range 10.0.2.0/24',
      'inside range 10.0.3.0/24',
    ])
    expect(lines).toEqual(
      expect.arrayContaining([
        `10.0.1.1 pod ${veth} masquerade`,
        `fd02:1::1 pod ${veth} masquerade`,
        'route 10.0.2.0/24 via 192.168.0.2',
        'route 10.0.3.0/24 via 192.168.9.3 in the tunnel',
      ]),
    )
  })

  test('of the ranges of nodes, with blocks of a pool that is gone, and of the families that this node has ranges of', () => {
    const made = world(true)
    made.put(node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24'] }), nodeNetwork('n1', { blocks: ['10.7.0.64/26'] }))
    made.put(nodeNetwork('n2', { blocks: ['10.7.0.0/26'] }))
    made.put(pod('a', { node: 'n1', ips: ['10.7.0.65', 'fd02:1::1'] }), pod('b', { node: 'n1', ips: ['172.20.0.1'] }))
    const lines = linesOf(made).filter((line) => /inside|pod .*|default/.test(line))
    const vethB = workloadInterface({ namespace: 'default', name: 'b' })
    expect(lines).toEqual(
      expect.arrayContaining([
        'inside range 10.7.0.0/26',
        'inside range 10.7.0.64/26',
        `10.7.0.65 pod ${veth} masquerade`,
        `fd02:1::1 pod ${veth}`,
        `172.20.0.1 pod ${vethB}`,
      ]),
    )
  })

  test('pods of another plugin are left to it', () => {
    const lines = linesOf(world(false))
    expect(lines.filter((line) => /inside|masquerade|in the tunnel/.test(line))).toEqual([])
  })

  test('the first pool of a family decides for all of it; without any pool it is as before', () => {
    const made = world(true)
    const before = linesOf(made)
    const plain = pool('pods', { cidr: '10.0.0.0/16' })
    made.put(plain)
    const between = linesOf(made)
    expect(between.filter((line) => /masquerade|in the tunnel|inside/.test(line))).toEqual([
      'inside range 10.0.0.0/16',
      'inside range fd02:1::/64',
      `fd02:1::1 pod ${veth} masquerade`,
    ])
    made.drop(plain)
    expect(linesOf(made).filter((line) => /masquerade|tunnel|inside/.test(line))).toEqual(
      before.filter((line) => /masquerade|tunnel|inside/.test(line)),
    )
  })
})

test('settings of nodes become rows of each node', () => {
  const world = new World(...cluster)
  const nodes = {
    nodePortAddresses: [parseCidr('192.168.0.0/24')],
    tunnelBack: [parseCidr('203.0.113.0/24')],
    nodesInside: true,
    failsafes: { inbound: [], outbound: [] },
  }
  world.input = { ...world.input, settings: { ...world.input.settings, nodes } }
  const ours = world.compile().fragments.filter(({ owner }) => owner.startsWith('Node/'))
  expect(ours.map(showFragment)).toEqual([
    'Node/n1\n  inside range 192.168.0.1/32\n  tunnel-back range 203.0.113.0/24\n  ::1 self\n  127.0.0.1 self\n  192.168.0.1 self node-ports',
    'Node/n2\n  inside range 192.168.0.2/32\n  192.168.0.2 node',
  ])
})
