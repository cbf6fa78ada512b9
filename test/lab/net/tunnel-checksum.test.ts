// SPDX-License-Identifier: Apache-2.0
/** The UDP checksum of the tunnel's packets on the wire, by setting, with real agents. Root. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { IN_TUNNEL, startCapture } from '../../../lab/traffic/capture.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { FAMILIES, NODE_PORT, nodeAddress, podAddress, POD_PORT, PROTOS, serviceAddress, World, type Family, type Wishes } from './world.ts'

const SOON = { timeout: 60_000 }
const LARGE = { payload: 200_000, reply: 300_000, timeoutMs: 5000 }
const world = new World('tunsum')

/** Rules of both nodes by which nothing leaves for the tunnel's port, nor a ping, by which one sees that they hold. */
const NO_TUNNEL = [
  ...['a', 'c'].map((node) => v3('HostEndpoint', `of-${node}`, { node, interfaceName: '*', profiles: ['netplane-default-allow'] })),
  v3('GlobalNetworkPolicy', 'no-tunnel', {
    selector: 'has(host)',
    types: ['Egress'],
    egress: [
      { action: 'Deny', protocol: 'UDP', destination: { ports: [4789] } },
      { action: 'Deny', protocol: 'ICMP' },
      { action: 'Allow' },
    ],
  }),
]

function v3(kind: string, name: string, spec: object): object {
  return { apiVersion: 'netplane.io/v3', kind, metadata: { name, labels: { host: '' } }, spec }
}

function wishes(bpfTunnelUDPChecksum: 'Enabled' | 'Disabled', felix: object = {}): Wishes {
  return {
    pools: { vxlanMode: 'Always', natOutgoing: true },
    endpoints: ['c-1'],
    felix: { bpfConnectTimeLoadBalancing: 'Disabled', bpfTunnelUDPChecksum, ...felix },
  }
}

/** Nothing is left to a device, so that what is seen is what a network gets. */
beforeAll(async () => {
  await world.up(wishes('Disabled'))
  for (const node of ['a', 'c'])
    await world.lab.mustRun(`node/${node}`, ['ethtool', '-K', 'eth0', 'tx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off'])
})
afterAll(() => world.down())

/** From outside through node a, from a pod, and from the node itself: by each hook that leads into the tunnel. */
function ways(family: Family): readonly (readonly [from: string, to: Endpoint])[] {
  return PROTOS.flatMap((proto) => [
    ['far', { proto, address: nodeAddress('a', family), port: NODE_PORT }],
    ['a-2', { proto, address: serviceAddress(family), port: 80 }],
    ['a-2', { proto, address: podAddress('c-1', family), port: POD_PORT }],
    ['node/a', { proto, address: podAddress('c-1', family), port: POD_PORT }],
  ])
}

async function allAnswer(): Promise<void> {
  for (const family of FAMILIES) {
    for (const [from, to] of ways(family)) {
      const size = to.proto === 'tcp' ? LARGE : { payload: 1200, reply: 1200, timeoutMs: 2000 }
      const ask = async (): Promise<string[]> => (await world.ask(from, to, { count: 2, ...size })).map((one) => one.slice(0, 3))
      await expect.poll(ask, { ...SOON, message: `${from} to ${to.proto} ${to.address}` }).toEqual(['c-1'])
    }
    expect(await world.ping('a-2', podAddress('c-1', family))).toBe(true)
  }
}

/** What the checksums of the tunnel's packets are worth, each once, while everything is asked. tcpdump calls it a bad
 * one where a packet of IPv6 has none. */
async function checksums(): Promise<string[]> {
  const captures = await Promise.all(
    ['node/a', 'node/c'].map((place) => startCapture(world.lab, { place, device: 'eth0', filter: IN_TUNNEL, verbose: true })),
  )
  await allAnswer()
  const lines = (await Promise.all(captures.map((one) => one.stop(20)))).flat().filter((line) => line.includes('VXLAN'))
  expect(lines.length).toBeGreaterThan(100)
  const worth = (line: string): string => /\[([^\]]*)\] VXLAN/.exec(line)?.[1] ?? line
  return [...new Set(lines.map((line) => worth(line).replace(/^bad udp cksum 0x0000 .*/, 'no cksum')))].sort()
}

test('packets of the tunnel have no checksum, and by setting each has the right one', async () => {
  await allAnswer()
  expect(await checksums()).toEqual(['no cksum'])
  world.put(wishes('Enabled'))
  await expect.poll(checksums, { ...SOON, timeout: 120_000 }).toEqual(['udp sum ok'])
})

/** Packets that programs have marked pass. Of those of the device the kernel forgets by which device they came. */
test.each(['Enabled', 'Disabled'] as const)('rules of hosts are not asked of packets of the tunnel, checksums %s', async (checksum) => {
  world.put({ ...wishes(checksum), more: NO_TUNNEL })
  await expect.poll(() => world.ping('node/a', nodeAddress('c', 4)), { ...SOON, timeout: 90_000 }).toBe(false)
  await allAnswer()
})
