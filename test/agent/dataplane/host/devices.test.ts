// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import type { DesiredNode } from '#agent/compile/desired.ts'
import { chosenDevices, decideDevices, deviceSysctls, selfAddresses, type Found } from '#agent/dataplane/host/devices.ts'
import { NO_ROUTES, type RouteLookup } from '#agent/dataplane/host/route-lookup.ts'
import { anInterface, interfaces, withLocal } from '../../../support/interfaces.ts'

const NOTHING: Found = { ways: NO_ROUTES, veths: new Set() }

function wanted(options: {
  readonly pods?: readonly string[]
  readonly addresses?: readonly string[]
  readonly pattern?: string
  readonly excluded?: string
  readonly elsewhere?: readonly string[]
}): Pick<DesiredNode, 'workloads' | 'host'> {
  return {
    workloads: (options.pods ?? []).map((iface) => ({ iface, pod: 'default/a', ours: true })),
    host: {
      addresses: (options.addresses ?? []).map(parseAddr),
      elsewhere: (options.elsewhere ?? []).map(parseAddr),
      pattern: options.pattern,
      excluded: options.excluded ?? '^$',
    },
  }
}

describe('settings of devices', () => {
  test('sources of the node\u2019s own are taken where programs are and on the loopback device; reverse path filtering is off for pods', () => {
    const all = interfaces(
      anInterface({ index: 1, name: 'lo', loopback: true }),
      anInterface({ index: 2, name: 'eth0' }),
      anInterface({ index: 3, name: 'docker0' }),
      anInterface({ index: 4, name: 'npl0123456789a' }),
    )
    expect(deviceSysctls(chosenDevices(decideDevices(wanted({ pods: ['npl0123456789a'], pattern: '^eth' }), all, NOTHING)), all)).toEqual({
      'net/ipv4/conf/lo/accept_local': '1',
      'net/ipv4/conf/eth0/accept_local': '1',
      'net/ipv4/conf/npl0123456789a/accept_local': '1',
      'net/ipv4/conf/npl0123456789a/rp_filter': '0',
      'net/ipv4/conf/all/rp_filter': '0',
    })
  })
})

describe('devices', () => {
  const VETH = 'workload npl0123456789a'
  const all = interfaces(
    anInterface({ index: 1, name: 'lo', loopback: true, addresses: ['127.0.0.1', '192.0.2.9'] }),
    anInterface({ index: 2, name: 'eth0', addresses: ['192.0.2.1'] }),
    anInterface({ index: 3, name: 'eth1', addresses: ['198.51.100.1'] }),
    anInterface({ index: 4, name: 'npl0123456789a' }),
  )
  const chosen = (options: Parameters<typeof wanted>[0]) =>
    chosenDevices(decideDevices(wanted(options), all, NOTHING)).map(({ kind, iface }) => `${kind} ${iface.name}`)

  test.each([
    ['by an address of the node', { addresses: ['192.0.2.1'] }, ['host eth0', VETH]],
    ['by name', { pattern: '^eth' }, ['host eth0', 'host eth1', VETH]],
    ['never one that is excluded', { addresses: ['192.0.2.1'], pattern: '^eth', excluded: '^eth0$' }, ['host eth1', VETH]],
    [
      'never the loopback device, even with an address of the node',
      { addresses: ['192.0.2.9'], pattern: '.*' },
      ['host eth0', 'host eth1', VETH],
    ],
    ['a pod only when it is there', { pods: ['npl0123456789a', 'nplbbbbbbbbbbb'] }, [VETH]],
    ['a pod is no host device', { pods: ['npl0123456789a'], pattern: '.*' }, ['host eth0', 'host eth1', VETH]],
    ['a veth before its pod is known, and after it is forgotten', { pods: [] }, [VETH]],
  ])('%s', (_, options, expected) => {
    expect(chosen(options)).toEqual(expected)
  })
})

describe('host devices are found without being named', () => {
  const all = interfaces(
    anInterface({ index: 1, name: 'lo', loopback: true, addresses: ['127.0.0.1'] }),
    anInterface({ index: 2, name: 'eth0', master: 3 }),
    anInterface({ index: 3, name: 'bond0', kind: 'bond', addresses: ['192.0.2.1'] }),
    anInterface({ index: 4, name: 'eth1', addresses: ['198.51.100.1/24'] }),
    anInterface({ index: 5, name: 'eth2' }),
    anInterface({ index: 6, name: 'eth3', addresses: ['203.0.113.5/32'] }),
    anInterface({ index: 7, name: 'docker0', kind: 'bridge', addresses: ['172.17.0.1/16'] }),
    anInterface({ index: 8, name: 'br0', kind: 'bridge' }),
    anInterface({ index: 9, name: 'eth4', master: 8 }),
    anInterface({ index: 10, name: 'eth4.7', kind: 'vlan' }),
    anInterface({ index: 11, name: 'wg0', kind: 'wireguard', mac: '' }),
    anInterface({ index: 12, name: 'eth5', master: 13, addresses: ['10.9.0.1/24'] }),
    anInterface({ index: 13, name: 'red', kind: 'vrf' }),
    anInterface({ index: 14, name: 'nplaaaaaaaaaaa' }),
  )
  const decided = (addresses: readonly string[], ways: RouteLookup): Record<string, string> => {
    const decisions = decideDevices(wanted({ addresses, pods: [] }), all, { ways, veths: new Set() })
    return Object.fromEntries(
      decisions
        .filter(({ use }) => use !== 'none')
        .map(({ iface, use, reason, vital }) => [iface.name, `${use}${vital ? '!' : ''}: ${reason}`]),
    )
  }
  const over = (...nodes: readonly (readonly [string, number])[]): RouteLookup['hops'] =>
    new Map(nodes.map(([node, device]) => [parseAddr(node), { gateway: parseAddr(node), device }]))

  test('by address, default route, way to a node, and a network of their own', () => {
    expect(decided(['192.0.2.1'], { defaults: [3, 5], hops: over(['203.0.113.9', 6], ['203.0.113.10', 8]) })).toEqual({
      bond0: "host!: has the node's address 192.0.2.1",
      eth1: 'host: has the network of 198.51.100.1/24',
      eth2: 'host: a default route leaves by it',
      eth3: 'host: the way to node 203.0.113.9',
      br0: 'host: the way to node 203.0.113.10',
      eth5: 'host: has the network of 10.9.0.1/24',
      nplaaaaaaaaaaa: 'workload: of no pod that we know',
    })
  })

  test('what programs cannot work on is refused, what leads nowhere is passed over', () => {
    expect(decided([], { defaults: [11], hops: over(['203.0.113.9', 10]) })).toEqual({
      'eth4.7': 'refused: tagged VLAN: not supported (the way to node 203.0.113.9)',
      wg0: 'refused: not Ethernet: not supported (a default route leaves by it)',
      eth1: 'host: has the network of 198.51.100.1/24',
      eth5: 'host: has the network of 10.9.0.1/24',
      nplaaaaaaaaaaa: 'workload: of no pod that we know',
    })
    expect(
      decideDevices(wanted({ pattern: '.*' }), all, NOTHING)
        .filter(({ use }) => use === 'none')
        .map(({ iface, reason }) => `${iface.name}: ${reason}`),
    ).toEqual(['lo: loopback', 'eth0: part of bond0', 'eth4: part of br0'])
  })
})

test("beside another plugin: devices to other nodes' pods, never a bridge of this node, and pods' veths while they exist", () => {
  const all = interfaces(
    anInterface({ index: 2, name: 'eth0', kind: 'veth', addresses: ['192.0.2.1/24'] }),
    anInterface({ index: 3, name: 'cni0', kind: 'bridge', addresses: ['10.3.0.1/24'] }),
    anInterface({ index: 4, name: 'flannel.1', kind: 'vxlan', addresses: ['10.3.0.0/32'] }),
    anInterface({ index: 5, name: 'flannel-wg', kind: 'wireguard', mac: '' }),
    anInterface({ index: 6, name: 'vethaa', kind: 'veth', master: 3 }),
    anInterface({ index: 7, name: 'vethbb', kind: 'veth', master: 3 }),
  )
  const over = [4, 5, 3, 2].map((device, at) => ({ addr: parseAddr(`10.3.${at + 1}.0`), device }))
  const hops = new Map(over.map(({ addr, device }) => [addr, { gateway: addr, device }]))
  const node = wanted({ addresses: ['192.0.2.1'], pods: ['vethaa'], elsewhere: over.map(({ addr }) => formatAddr(addr)) })
  const decisions = decideDevices(node, all, { ways: { hops, defaults: [] }, veths: new Set([2, 6, 7, 8]) })
  expect(decisions.map(({ iface, use, reason }) => `${iface.name} ${use}: ${reason}`)).toEqual([
    "eth0 host: has the node's address 192.0.2.1",
    'cni0 none: leads to no network by itself',
    "flannel.1 host: the way to other nodes' pods",
    "flannel-wg refused: not Ethernet: not supported (the way to other nodes' pods)",
    'vethaa workload: pod default/a',
    'vethbb workload: of no pod that we know',
  ])
})

test('the node answers on its global addresses of devices that are up', () => {
  const all = interfaces(
    anInterface({ index: 1, name: 'lo', loopback: true, addresses: ['203.0.113.7', '127.0.0.1', '::1'] }),
    anInterface({ index: 2, name: 'eth0', addresses: ['192.0.2.1', 'fd00::1', 'fe80::1'] }),
    anInterface({ index: 3, name: 'docker0', addresses: ['172.17.0.1'], scope: 0 }),
    anInterface({ index: 4, name: 'old0', addresses: ['192.0.2.200'], up: false }),
    anInterface({ index: 5, name: 'npl0123456789a', addresses: ['169.254.1.1'] }),
    anInterface({ index: 6, name: 'eth2', addresses: ['10.0.0.9'], scope: 253 }),
    anInterface({ index: 7, name: 'kube-ipvs0', addresses: ['10.96.0.1'] }),
    anInterface({ index: 8, name: 'eth3', addresses: ['192.0.2.1'] }),
  )
  expect(selfAddresses(all).map(formatAddr)).toEqual(['172.17.0.1', '192.0.2.1', '203.0.113.7', 'fd00::1'])
})

test("the node answers on what its kernel takes for the node itself, but for another proxy's services", () => {
  const ipvs = anInterface({ index: 7, name: 'kube-ipvs0', addresses: ['10.96.0.1', 'fd00:96::1'], up: false })
  const old = anInterface({ index: 4, name: 'old0', addresses: ['192.0.2.200', 'fd00::200'], up: false })
  const local = ['127.0.0.0/8', '127.0.0.1/32', '192.0.2.200/32', '169.254.20.10/32', '10.9.0.0/24', '10.96.0.1/32']
  const local6 = ['::1/128', 'fe80::1/128', 'fd00:9::/64', 'fd00::9/128', 'fd00:96::1/128']
  const found = selfAddresses(withLocal([...local, ...local6], ipvs, old))
  expect(found.map(formatAddr)).toEqual(['169.254.20.10', '192.0.2.200', 'fd00::9'])
})
