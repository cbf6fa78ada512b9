// SPDX-License-Identifier: Apache-2.0
/** Pods are ours, and ways to those of other nodes are flannel's: its device and rules, made by script as it makes
 * them. Layer: test. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { node, pod } from '../agent/manifests.ts'
import { CniNode, ips, waitingPod } from './node.ts'

const OTHER = { pod: 'n2' }
const OLD = { pod: 'old' }
const NEW = { pod: 'a' }
const [POD_OF_OTHER, OUTSIDE] = ['10.1.2.5', '198.51.100.7']

interface End {
  readonly range: string
  readonly address: string
  readonly mac: string
}
const ENDS = {
  n1: { range: '10.1.1.0/28', address: '192.0.2.1', mac: '5e:00:00:00:00:01' },
  n2: { range: '10.1.2.0/28', address: '192.0.2.2', mac: '5e:00:00:00:00:02' },
} as const

/** As flannel leaves a node: its device, and the way to the other's range. */
function flannel(own: End, other: End, device: string): string {
  const [ownEnd, otherEnd] = [own, other].map(({ range }) => range.replace(/\/.*/, ''))
  return `
    ip link add flannel.1 address ${own.mac} mtu 1450 type vxlan id 1 dstport 8472 nolearning local ${own.address} dev ${device}
    ip addr add ${ownEnd}/32 dev flannel.1
    ip link set flannel.1 up
    ip neigh add ${otherEnd} lladdr ${other.mac} dev flannel.1 nud permanent
    bridge fdb add ${other.mac} dev flannel.1 dst ${other.address} self permanent
    ip route add ${other.range} via ${otherEnd} dev flannel.1 onlink
    sysctl -qw net.ipv4.ip_forward=1`
}

let of: CniNode
beforeEach(async () => {
  of = await CniNode.make()
  const { machine } = of
  of.makeNetns(OTHER)
  machine.sh(`ip link set wire0 netns ${of.netns(OTHER)}
    ip route add default via ${ENDS.n2.address}
    # of the range, and the node's own
    ip addr add 10.1.1.2/32 dev lo
    iptables -t nat -A POSTROUTING -s 10.1.0.0/16 ! -d 10.1.0.0/16 -j MASQUERADE
    ${flannel(ENDS.n1, ENDS.n2, 'eth0')}`)
  of.inPod(
    OTHER,
    `ip link set lo up
    ip addr add ${ENDS.n2.address}/24 dev wire0
    ip link set wire0 up
    ip addr add ${POD_OF_OTHER}/32 dev lo
    ip addr add ${OUTSIDE}/32 dev lo
    nft add table ip outside
    nft "add chain ip outside in { type filter hook input priority 0; }"
    nft add rule ip outside in ip daddr ${OUTSIDE} ip saddr 10.1.0.0/16 drop
    ${flannel(ENDS.n2, ENDS.n1, 'wire0')}`,
  )
  const farPod = { ...(pod('far', POD_OF_OTHER) as object), spec: { nodeName: 'n2', containers: [{ name: 'c', image: 'i' }] } }
  const nodes = Object.entries(ENDS).map(([name, { address, range }]) => ({
    ...(node(name, address, '') as object),
    spec: { podCIDRs: [range] },
  }))
  machine.put('nodes.json', nodes)
  machine.put('pods.json', [pod('old', '10.1.1.1'), waitingPod('a'), farPod])
  machine.put('pool.json', [{ apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'p' }, spec: { cidr: '10.9.0.0/16' } }])
})

afterEach(async () => {
  await of.machine[Symbol.asyncDispose]()
})

test("new pods have addresses of the Node's range beside those of before, and flannel's ways and masquerading", async () => {
  // host-local had given it the range's first
  of.plugOld(OLD, '10.1.1.1')
  mkdirSync(of.confDir, { recursive: true })
  const before = join(of.confDir, '10-canal.conflist')
  writeFileSync(
    before,
    JSON.stringify({ cniVersion: '0.3.1', name: 'k8s-pod-network', plugins: [{ type: 'netplane' }, { type: 'portmap' }] }),
  )
  const agent = await of.ready('--cni-local')
  await agent.event('cni.old-lists-removed')
  expect(existsSync(before)).toBe(false)
  expect(ips(of.add(NEW))).toEqual(['10.1.1.3/32'])
  expect(of.inPod(NEW, 'ip link show eth0')).toContain(' mtu 1450 ')

  const ping = (to: string): string => `ping -c 2 -i 0.2 -W 2 ${to}`
  for (const from of [OLD, NEW])
    for (const to of ['10.1.1.1', '10.1.1.3', POD_OF_OTHER, OUTSIDE]) expect(of.succeeds(from, ping(to)), `${from.pod} → ${to}`).toBe(true)
  for (const to of ['10.1.1.1', '10.1.1.3']) expect(of.succeeds(OTHER, ping(`-I ${POD_OF_OTHER} ${to}`)), to).toBe(true)
  expect(of.machine.sh('ip route show proto 80')).toBe('')
})
