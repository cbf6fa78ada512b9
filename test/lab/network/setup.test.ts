// SPDX-License-Identifier: Apache-2.0
/** The lines for `ip -batch`. */
import { describe, expect, test } from 'vitest'
import { takeInventory } from '../../../lab/network/inventory.ts'
import {
  vethLines,
  firstSysctls,
  givenAddresses,
  gonePods,
  settleLines,
  staleAddressLines,
  type NetnsState,
} from '../../../lab/network/setup.ts'
import { layOut, type Topology } from '../../../lab/network/topology.ts'
import { node, pod, TWO_NODES } from '../cluster.ts'

const NOTHING: NetnsState = new Map()

function lay(objects: readonly object[], plain = false): Topology {
  return layOut(takeInventory(objects), { lab: 't', client: [], mtu: 1400, underlayMtu: 1500, plain })
}

/** MACs and interface names as letters: their values are no matter here. */
function readable(lines: readonly string[] | undefined): string[] {
  return (lines ?? []).map((line) => line.replaceAll(/02(:[0-9a-f]{2}){5}/g, 'MAC').replaceAll(/npl[0-9a-f]{11}/g, 'nplX'))
}

describe('veths', () => {
  const topology = lay([node('a', '10.1.1.5'), pod('default/one', 'a', '10.2.0.1')])
  test('all of a new lab', () => {
    const lines = vethLines(topology, () => NOTHING)
    expect(readable(lines.get('nplab-t-fabric'))).toEqual([
      'link add br0 type bridge stp_state 0 mcast_snooping 0',
      'link add p-a type veth peer name eth0 address MAC netns nplab-t-node-a',
      'link add c-client type veth peer name eth0 address MAC netns nplab-t-client',
      'link add c-far type veth peer name eth0 address MAC netns nplab-t-far',
    ])
    expect(readable(lines.get('nplab-t-node-a'))).toEqual([
      'link add nplX address MAC type veth peer name eth0 address MAC netns nplab-t-pod-default.one',
    ])
  })
  test('no veth is made when all are there', () => {
    const iface = topology.pods[0]?.iface ?? ''
    const there = new Map(['br0', 'p-a', 'c-client', 'c-far', 'eth0', iface].map((device) => [device, []]))
    expect(vethLines(topology, () => there).size).toBe(0)
  })
  test('an end whose eth0 has gone with its namespace is replaced', () => {
    const lines = vethLines(topology, (netns) =>
      netns === 'nplab-t-fabric'
        ? new Map([
            ['br0', []],
            ['p-a', []],
            ['c-far', []],
          ])
        : netns === 'nplab-t-far'
          ? new Map([['eth0', []]])
          : NOTHING,
    )
    expect(readable(lines.get('nplab-t-fabric'))).toEqual([
      'link del dev p-a',
      'link add p-a type veth peer name eth0 address MAC netns nplab-t-node-a',
      'link add c-client type veth peer name eth0 address MAC netns nplab-t-client',
    ])
  })
  test('an eth0 whose other end is elsewhere goes first', () => {
    const lines = vethLines(topology, (netns) => (netns === 'nplab-t-pod-default.one' ? new Map([['eth0', []]]) : NOTHING))
    expect([...lines][0]).toEqual(['nplab-t-pod-default.one', ['link del dev eth0']])
  })
})

describe('addresses and routes', () => {
  test('a node with its pod', () => {
    const lines = settleLines(lay([node('a', '10.1.1.5', 'fd01::5'), pod('default/one', 'a', '10.2.0.1', 'fd02::1')]))
    expect(readable(lines.get('nplab-t-node-a'))).toEqual([
      'link set lo up',
      'link set eth0 mtu 1500 up',
      'addr replace 10.1.1.5/24 dev eth0',
      'addr replace fd01::5/64 dev eth0 nodad',
      'route replace default via 10.1.1.1 dev eth0',
      'route replace default via fd01::1 dev eth0',
      'link set nplX mtu 1400 up',
      'route replace 10.2.0.1/32 dev nplX scope link',
      'route replace fd02::1/128 dev nplX',
    ])
    expect(readable(lines.get('nplab-t-pod-default.one'))).toEqual([
      'link set lo up',
      'link set eth0 mtu 1400 up',
      'addr replace 10.2.0.1/32 dev eth0',
      'addr replace fd02::1/128 dev eth0 nodad',
      'route replace 169.254.1.1 dev eth0 scope link',
      'route replace default via 169.254.1.1 dev eth0 onlink',
      'route replace default via fe80::1 dev eth0',
    ])
  })
  test('a plain lab routes by itself', () => {
    const lines = settleLines(lay(TWO_NODES, true))
    expect(readable(lines.get('nplab-t-node-a')).slice(-2)).toEqual([
      'route replace 10.31.1.3/32 via 172.31.7.3 proto 110',
      'route replace fd00:31:1::3/128 via fd00:31:7::3 proto 110',
    ])
    expect(readable(lines.get('nplab-t-pod-shop.three'))).toContain('neigh replace fe80::1 lladdr MAC dev eth0 nud permanent')
  })
})

test('nodes forward only in a plain lab: otherwise it is for the agent to switch on', () => {
  const forwarding = (plain: boolean): unknown => firstSysctls(lay(TWO_NODES, plain), 'nplab-t-node-a')['net/ipv4/ip_forward']
  expect([forwarding(false), forwarding(true)]).toEqual(['0', '1'])
  expect(firstSysctls(lay(TWO_NODES), 'nplab-t-fabric')['net/ipv4/ip_forward']).toBe('1')
})

test('a node that changed its address loses the old one, but none that others gave it', () => {
  const before = givenAddresses(lay([node('a', '10.1.1.5')]))
  const now = lay([node('a', '10.1.1.6')])
  const state = new Map([['eth0', ['10.1.1.5/24', '10.1.1.6/24', '10.1.1.77/32']]])
  const lines = staleAddressLines(now, before, (netns) => (netns === 'nplab-t-node-a' ? state : NOTHING))
  expect([...lines]).toEqual([['nplab-t-node-a', ['addr del 10.1.1.5/24 dev eth0']]])
})

test('pods that went or moved are gone, new ones are not', () => {
  const before = lay(TWO_NODES)
  const now = lay([...TWO_NODES.slice(0, 3), pod('default/two', 'b', '10.31.0.2'), pod('new/pod', 'a', '10.31.0.9')])
  expect(gonePods(before, now).map((gone) => gone.key)).toEqual(['default/two', 'shop/three'])
  expect(gonePods(undefined, now)).toEqual([])
})
