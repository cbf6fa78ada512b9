// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import type { Decision } from '#agent/dataplane/host/devices.ts'
import { routerSysctls } from '#agent/dataplane/host/router-advertisements.ts'
import { anInterface } from '../../../support/interfaces.ts'

const FORWARDS = { sysctls: { 'net/ipv6/conf/all/forwarding': '1' } }

function decision(name: string, use: Decision['use'], of: { readonly kind?: string; readonly loopback?: boolean } = {}): Decision {
  return { iface: anInterface({ index: 2, name, ...of }), use, reason: 'x', vital: false }
}

const DECISIONS = [
  decision('lo', 'none', { loopback: true }),
  decision('eth0', 'host'),
  decision('eth1', 'none'),
  decision('eth2.7', 'refused', { kind: 'vlan' }),
  decision('bond0', 'none', { kind: 'bond' }),
  decision('br0', 'host', { kind: 'bridge' }),
  decision('docker0', 'none', { kind: 'bridge' }),
  decision('veth1', 'none', { kind: 'veth' }),
  decision('npl0123456789a', 'workload', { kind: 'veth' }),
]

test('routers are listened to where they are reached, and not where containers could play them', () => {
  expect(Object.keys(routerSysctls(FORWARDS, DECISIONS))).toEqual(
    ['eth0', 'eth1', 'eth2.7', 'bond0', 'br0'].map((name) => `net/ipv6/conf/${name}/accept_ra`),
  )
})

test.each([[{ sysctls: {} }], [{ sysctls: { 'net/ipv6/conf/all/forwarding': undefined } }]])(
  'nothing is changed for %j: the node listens to them as it did',
  (node) => {
    expect(routerSysctls(node, DECISIONS)).toEqual({})
  },
)
