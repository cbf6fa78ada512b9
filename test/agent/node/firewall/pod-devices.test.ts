// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { ownDevices, podDevices } from '#agent/node/firewall/pod-devices.ts'

const devices = [
  { index: 2, name: 'cni0', kind: 'bridge', master: 0 },
  { index: 3, name: 'vetha1', kind: 'veth', master: 2 },
  { index: 4, name: 'vetha2', kind: 'veth', master: 2 },
  { index: 5, name: 'eni0a1', kind: 'veth', master: 0 },
  { index: 6, name: 'eni0a2', kind: 'veth', master: 0 },
]
const of = (...veths: readonly string[]) =>
  podDevices(
    veths.map((iface) => ({ iface, ours: iface.startsWith('npl') })),
    { devices, prefix: 'npl' },
  )

test('bridges, and one of those that are called alike', () => {
  expect(of('eni0a1', 'eni0a2', 'vetha1', 'vetha2', 'npl0123456789a')).toEqual([
    { name: 'eni0a1', prefix: 'eni', routed: true },
    { name: 'cni0', prefix: undefined, routed: true },
    ownDevices('npl'),
  ])
  expect(of()).toEqual([ownDevices('npl')])
})
