// SPDX-License-Identifier: Apache-2.0
/** Devices that are in the way, in a real network namespace; those of VLANs and of IPVS's kernel part are in virtual
 * machines (cases.ts). Layer: test. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { blocking, codes, look } from './look.ts'

let node: ScratchNode

beforeEach(async () => {
  node = await ScratchNode.make()
  node.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set wire0 up
    ip route add default via 192.0.2.254`)
})

afterEach(async () => {
  await node[Symbol.asyncDispose]()
})

const devices = (...flags: string[]): ReturnType<typeof look> => look(node, '--group=devices', ...flags)

test('a node that is fit has no findings, and says its MTU and its subnet', async () => {
  const found = await devices('--node-addresses=192.0.2.1')
  expect(found).toMatchObject({ findings: [], facts: { mtu: '1500', subnets: '192.0.2.0/24' }, exit: 0 })
  expect(found.prose).toBe('devices: note: mtu 1500\ndevices: note: subnets 192.0.2.0/24\n')
})

test('an MTU that leaves pods too little, known by the default route where no address is given', async () => {
  node.sh('ip link set eth0 mtu 1329')
  expect(codes(await devices())).toEqual(['mtu-small eth0 1329 1330'])
  expect(codes(await devices('--node-addresses=192.0.2.1'))).toEqual(['mtu-small eth0 1329 1330'])
  node.sh('ip link set eth0 mtu 1330')
  expect(codes(await devices())).toEqual([])
})

test('an MTU that pods are given, and the tunnel does not take', async () => {
  expect(codes(await devices('--mtu=1450'))).toEqual([])
  const found = await devices('--mtu=1451', '--check')
  expect(codes(found)).toEqual(['mtu-exceeded eth0 1500 1451'])
  expect(found.exit).toBe(1)
  expect(found.prose).toContain("devices: blocking: eth0 has an MTU of 1500, and pods' packets of 1451 bytes")
})

test("addresses that kube-proxy's IPVS mode has left", async () => {
  node.sh(
    'ip link add kube-ipvs0 type veth peer name other; ip addr add 10.96.0.1/32 dev kube-ipvs0; ip addr add 10.96.0.10/32 dev kube-ipvs0',
  )
  const found = await devices()
  expect(codes(found)).toEqual(['ipvs-device kube-ipvs0 2'])
  expect(blocking(found)).toEqual(['ipvs-device'])
})

test('devices of other data planes, where pods are not theirs', async () => {
  node.sh('ip link add flannel.1 type vxlan id 1 dstport 8472 dev eth0; ip link add cilium_host type veth peer name cilium_net')
  const found = await devices()
  expect(codes(found).sort()).toEqual(['foreign-device Cilium cilium_net, cilium_host', 'foreign-device flannel flannel.1'])
  expect(blocking(found)).toEqual([])
  expect(codes(await devices('--cni=Chained'))).toEqual([])
})
