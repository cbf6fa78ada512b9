// SPDX-License-Identifier: Apache-2.0
/** Which host endpoint a device is. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { UNTRACKED_DEVICES } from '#lib/base/bpf-constants.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { NO_SET, type HostValue } from '#agent/compile/policy/tables.ts'
import type { Device } from '#agent/dataplane/host/devices.ts'
import { HostEndpointRules } from '#agent/dataplane/policy/host-endpoint-rules.ts'
import { anInterface } from '../../../support/interfaces.ts'

const device = (name: string, index: number, ...addresses: string[]): Device => ({
  kind: 'host',
  iface: anInterface({ name, index, addresses }),
})

const sets = (normal: string): HostValue['sets'] => ({
  untrackedIngress: NO_SET,
  untrackedEgress: NO_SET,
  earlyIngress: NO_SET,
  forwardIngress: NO_SET,
  forwardEgress: NO_SET,
  normalIngress: normal,
  normalEgress: NO_SET,
})

const endpoint = (set: string, of: Partial<HostValue>): HostValue => ({
  interfaceName: undefined,
  addrs: [],
  sets: sets(set),
  staged: sets(set),
  ...of,
})

let rules: HostEndpointRules

beforeEach(() => {
  rules = new HostEndpointRules()
  rules.setDevices([device('eth0', 2, '192.0.2.1'), device('eth1', 3, '198.51.100.1'), { ...device('npl1', 9), kind: 'workload' }])
})

const shown = (): string[] => rules.rows().map(([{ ifindex, view }, { normal_ingress: set }]) => `${ifindex}/${view} ${set}`)

test('without host endpoints there are no rows', () => {
  expect(shown()).toEqual([])
})

test("a device's host endpoint is by name, then by address, then the wildcard, which stands for the node's processes too", () => {
  rules.set('HostEndpoint/a', endpoint('a', { addrs: [parseAddr('192.0.2.1'), parseAddr('198.51.100.1')] }))
  rules.set('HostEndpoint/b', endpoint('b', { interfaceName: 'eth0', addrs: [parseAddr('198.51.100.1')] }))
  expect(shown()).toEqual(['2/0 b', '3/0 a'])
  rules.set('HostEndpoint/c', endpoint('c', { interfaceName: '*' }))
  expect(shown()).toEqual(['2/0 b', '3/0 a', '0/0 c'])
  rules.set('HostEndpoint/a', undefined)
  expect(shown()).toEqual(['2/0 b', '3/0 c', '0/0 c'])
})

test('of two host endpoints that fit a device the first by name wins', () => {
  rules.set('HostEndpoint/z', endpoint('z', { interfaceName: 'eth0' }))
  rules.set('HostEndpoint/y', endpoint('y', { interfaceName: 'eth0' }))
  expect(shown()).toEqual(['2/0 y'])
})

test('the staged view has rows where it differs', () => {
  rules.set('HostEndpoint/a', endpoint('a', { interfaceName: 'eth1', staged: sets('s') }))
  expect(shown()).toEqual(['3/0 a', '3/1 s'])
})

test('a host endpoint that matches no device is named, with the reason', () => {
  rules.set('HostEndpoint/z', endpoint('z', { interfaceName: 'eth0' }))
  rules.set('HostEndpoint/y', endpoint('y', { interfaceName: 'eth0' }))
  rules.set('HostEndpoint/x', endpoint('x', { addrs: [parseAddr('198.51.100.1'), parseAddr('203.0.113.1')] }))
  rules.set('HostEndpoint/w', endpoint('w', { interfaceName: '*' }))
  expect([...rules.strays]).toEqual([])
  rules.set('HostEndpoint/v', endpoint('v', { interfaceName: 'npl1' }))
  rules.set('HostEndpoint/u', endpoint('u', { interfaceName: 'eht0', addrs: [parseAddr('192.0.2.1')] }))
  rules.set('HostEndpoint/t', endpoint('t', { addrs: [parseAddr('203.0.113.1'), parseAddr('2001:db8::1')] }))
  expect([...rules.strays]).toEqual([
    ['HostEndpoint/t', 'no host device of this node has 203.0.113.1 or 2001:db8::1'],
    ['HostEndpoint/u', 'this node has no host device eht0'],
    ['HostEndpoint/v', 'this node has no host device npl1'],
  ])
  rules.setDevices([device('eht0', 4, '203.0.113.1')])
  expect([...rules.strays.keys()]).toEqual(['HostEndpoint/v', 'HostEndpoint/y', 'HostEndpoint/z'])
})

test('XDP has untracked rules too, for devices whose index fits', () => {
  rules.setDevices([device('eth0', 2), device('late0', UNTRACKED_DEVICES), { ...device('npl1', 9), kind: 'workload' }])
  const untracked = { ...sets('n'), untrackedIngress: 'u' }
  rules.set('HostEndpoint/all', endpoint('n', { interfaceName: '*', sets: untracked, staged: sets('s') }))
  expect(rules.untrackedRows()).toEqual([[2, 'u']])
  expect(rules.untracked.map(({ name }) => name)).toEqual(['eth0', 'late0'])
  rules.set('HostEndpoint/eth0', endpoint('n', { interfaceName: 'eth0' }))
  expect(rules.untrackedRows(), 'it has none').toEqual([])
})
