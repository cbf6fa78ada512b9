// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import type { DesiredNode } from '#agent/compile/desired.ts'
import { chooseDevices, deviceSysctls, selfAddresses } from '#agent/dataplane/devices.ts'
import { anInterface, interfaces } from '../../support/interfaces.ts'

function wanted(options: {
  readonly pods?: readonly string[]
  readonly addresses?: readonly string[]
  readonly pattern?: string
}): Pick<DesiredNode, 'workloads' | 'host'> {
  return {
    workloads: (options.pods ?? []).map((iface) => ({ iface, pod: 'default/a' })),
    host: { addresses: (options.addresses ?? []).map(parseAddr), pattern: options.pattern },
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
    expect(deviceSysctls(chooseDevices(wanted({ pods: ['npl0123456789a'], pattern: '^eth' }), all), all)).toEqual({
      'net/ipv4/conf/lo/accept_local': '1',
      'net/ipv4/conf/eth0/accept_local': '1',
      'net/ipv4/conf/npl0123456789a/accept_local': '1',
      'net/ipv4/conf/npl0123456789a/rp_filter': '0',
    })
  })
})

describe('devices', () => {
  const all = interfaces(
    anInterface({ index: 1, name: 'lo', loopback: true, addresses: ['127.0.0.1', '192.0.2.9'] }),
    anInterface({ index: 2, name: 'eth0', addresses: ['192.0.2.1'] }),
    anInterface({ index: 3, name: 'eth1', addresses: ['198.51.100.1'] }),
    anInterface({ index: 4, name: 'npl0123456789a' }),
    anInterface({ index: 5, name: 'nplaaaaaaaaaaa' }),
  )
  const chosen = (options: Parameters<typeof wanted>[0]) =>
    chooseDevices(wanted(options), all).map(({ kind, iface }) => `${kind} ${iface.name}`)

  test.each([
    ['by an address of the node', { addresses: ['192.0.2.1'] }, ['host eth0']],
    ['by name', { pattern: '^eth' }, ['host eth0', 'host eth1']],
    [
      'never the loopback device, even with an address of the node',
      { addresses: ['192.0.2.9'], pattern: '.*' },
      ['host eth0', 'host eth1'],
    ],
    ['a pod only when it is there', { pods: ['npl0123456789a', 'nplbbbbbbbbbbb'] }, ['workload npl0123456789a']],
    ['a pod is no host device', { pods: ['npl0123456789a'], pattern: '.*' }, ['host eth0', 'host eth1', 'workload npl0123456789a']],
  ])('%s', (_, options, expected) => {
    expect(chosen(options)).toEqual(expected)
  })
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
