// SPDX-License-Identifier: Apache-2.0
/** What is told of devices that this machine's kernel cannot make. Layer: test. */
import { expect, test } from 'vitest'
import { ipvsFindings, kindFindings, mtuFindings } from '#agent/preflight/devices.ts'
import { foreignDevices, ownerOfPin, ownerOfProgram } from '#agent/preflight/data-planes.ts'
import type { Decision } from '#agent/dataplane/host/devices.ts'
import { InterfaceTable, type Interface } from '#agent/interfaces/table.ts'
import { finding } from '#lib/preflight/findings.ts'
import { parseAddr } from '#lib/base/ip.ts'

function device(name: string, more: Partial<Interface> = {}): Interface {
  const plain = { index: 2, mtu: 1500, mac: '02:00:00:00:00:01', up: true, running: true, loopback: false, kind: undefined, master: 0 }
  return { ...plain, addresses: [], name, ...more }
}

const decision = (iface: Interface, more: Partial<Decision>): Decision => ({ iface, use: 'host', reason: '', vital: true, ...more })

test('a tagged VLAN is blocking where the node needs it', () => {
  const vlan = device('eth0.7', { kind: 'vlan' })
  const reason = "tagged VLAN: not supported (has the node's address 10.0.0.1)"
  expect(kindFindings(decision(vlan, { use: 'refused', reason }))).toEqual([
    finding('node-device-vlan', 'eth0.7', "has the node's address 10.0.0.1"),
  ])
  expect(kindFindings(decision(vlan, { use: 'refused', reason, vital: false }))[0]?.code).toBe('device-vlan')
  expect(kindFindings(decision(vlan, { use: 'none', reason: 'leads to no network by itself' }))).toEqual([])
})

test('a device that is no Ethernet', () => {
  const wg = device('wg0', { kind: 'wireguard', mac: '' })
  const reason = 'not Ethernet: not supported (a default route leaves by it)'
  expect(kindFindings(decision(wg, { use: 'refused', reason }))).toEqual([
    finding('node-device-kind', 'wg0', 'a default route leaves by it'),
  ])
  expect(kindFindings(decision(wg, { use: 'refused', reason, vital: false }))[0]?.code).toBe('device-kind')
})

test('the MTU of the devices of the node, by the family of its address', () => {
  const v6 = device('eth0', { mtu: 1349, addresses: [{ addr: parseAddr('fd00::1'), bits: 64, scope: 0 }] })
  const other = device('eth1', { mtu: 1000 })
  expect(mtuFindings([decision(v6, {}), decision(other, { vital: false })], undefined)).toEqual([finding('mtu-small', 'eth0', 1349, 1350)])
  expect(mtuFindings([decision(other, { vital: false })], undefined)).toEqual([finding('mtu-small', 'eth1', 1000, 1350)])
})

/** As the kernel has it: of a node whose kube-proxy runs in IPVS mode. */
const IP_VS = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:01BB rr 
  -> C0A80A01:192B      Masq    1      2          0         
TCP  [fd96:0000:0000:0000:0000:0000:0000:000a]:0035 rr 
UDP  0A60000A:0035 rr 
  -> 0AF40002:0035      Masq    1      0          0         
FWM  00000001 rr 
`

test('services of IPVS are counted, and its headings are none', () => {
  const none = new InterfaceTable(() => undefined)
  expect(ipvsFindings(none, IP_VS)).toEqual([finding('ipvs-services', 4)])
  expect(ipvsFindings(none, IP_VS.split('\n').slice(0, 3).join('\n'))).toEqual([])
  expect(ipvsFindings(none, undefined)).toEqual([])
})

test('devices, pins and programs of others by their names', () => {
  const tunl0 = device('tunl0')
  const used = device('tunl0', { addresses: [{ addr: parseAddr('10.0.0.1'), bits: 32, scope: 0 }] })
  const owners = (...devices: Interface[]): unknown => [...foreignDevices(devices)].map(([owner, found]) => `${owner}: ${found.length}`)
  expect(owners(device('eth0'), device('npl0123456789a'), device('netplane-vxlan'), device('calix'), tunl0)).toEqual([])
  expect(owners(used, device('flannel.1'), device('flannel-v6.1'), device('cali0123456789a'), device('vxlan.calico'))).toEqual([
    'an IP-in-IP tunnel: 1',
    'flannel: 2',
    'Calico: 2',
  ])
  expect(['cilium', 'tc/globals/cilium_calls', 'tc/globals/np_ct', 'netplane', 'calico'].map(ownerOfPin)).toEqual([
    'Cilium',
    'Cilium',
    undefined,
    undefined,
    'Calico',
  ])
  expect(['cil_to_netdev', 'from_netdev', 'calico_connect', 'cali_tc_preambl', 'from_host', 'np_main'].map(ownerOfProgram)).toEqual([
    'Cilium',
    'Cilium',
    'Calico',
    'Calico',
    undefined,
    undefined,
  ])
})
