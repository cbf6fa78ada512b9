// SPDX-License-Identifier: Apache-2.0
/** Nodes that have ExternalIPs, addresses of a node that its cluster does not know, and what it sends from node ports.
 * Root. Layer: test. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAMILIES, FAR, FAR_PORT, NODE_PORT, nodeAddress, podAddress, POD_PORT, PROTOS, World, type Family } from './world.ts'

/** of an echo server of node a */
const OWN_PORT = 7100
const world = new World('ownaddr')

beforeAll(async () => {
  await world.up({
    pools: { vxlanMode: 'CrossSubnet', natOutgoing: true },
    endpoints: ['a-1', 'b-1', 'c-1'],
    // of c in both families, of b in one
    external: { b: [6], c: [4, 6] },
  })
  await world.serve('far', FAR_PORT)
})
afterAll(() => world.down())

/** By TCP and UDP at these addresses, which no device that is up has. */
async function serveOwn(addresses: readonly string[]): Promise<void> {
  await world.serve('node/a', OWN_PORT)
  // of IPv6 a socket asks for the address, not for the route
  await world.lab.mustRun('node/a', ['sysctl', '-qw', 'net.ipv6.ip_nonlocal_bind=1'])
  const script = `const bind = (address) => {
    const socket = require('node:dgram').createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.on('message', (asked, { address: peer, port }) =>
      socket.send(JSON.stringify({ pod: 'node/a', peer: peer + ':' + port, local: address, bytes: asked.length }), port, peer))
    return new Promise((resolve) => socket.bind(${OWN_PORT}, address, resolve))
  }
  Promise.all(process.argv.slice(1).map(bind)).then(() => console.log('ready'))`
  const server = world.lab.spawn('node/a', [process.execPath, '-e', script, ...addresses])
  if (server.stdout !== null) await once(server.stdout, 'data')
}

describe('a node with an ExternalIP and no InternalIP', () => {
  test('a node with an ExternalIP alone is ready', async () => {
    for (const node of ['b', 'c']) await expect.poll(async () => (await world.lab.agents.readiness(node)).text).toBe('')
  })

  test('is reached by node port and in the tunnel, and its pods leave as the node', async () => {
    for (const family of FAMILIES)
      for (const proto of PROTOS) {
        const nodePort = { proto, address: nodeAddress('c', family), port: NODE_PORT }
        const answers = await world.ask('client', nodePort, { count: 24 })
        expect(answers).toEqual(['a-1', 'b-1', 'c-1'].map((pod) => `${pod} < ${world.client(family)}`))
        const pod = { proto, address: podAddress('c-1', family), port: POD_PORT }
        expect(await world.ask('a-1', pod)).toEqual([`c-1 < ${podAddress('a-1', family)}`])
        expect(await world.ask('c-1', { proto, address: FAR[family], port: FAR_PORT })).toEqual([`far < ${nodeAddress('c', family)}`])
      }
  })
})

describe("a node's own address that its cluster does not know", () => {
  const prefix = (family: Family): string => (family === 4 ? '203.0.113.0/28' : '2001:db8:9::/64')
  const inPrefix = (family: Family): string => (family === 4 ? '203.0.113.7' : '2001:db8:9::7')

  beforeAll(async () => {
    // down, as node-local DNS caches leave their device
    await world.ip('node/a', 'link', 'add', 'dns0', 'type', 'veth', 'peer', 'name', 'dns1')
    await world.ip('node/a', 'address', 'add', '169.254.20.10/32', 'dev', 'dns0')
    for (const family of FAMILIES) {
      await world.ip('node/a', 'route', 'add', 'local', prefix(family), 'dev', 'lo')
      await world.ip('client', 'route', 'add', prefix(family), 'via', nodeAddress('a', family))
    }
    await serveOwn(['169.254.20.10', ...FAMILIES.map(inPrefix)])
  })

  test("hears a pod's own address, though the pod leaves for the world as the node", async () => {
    for (const [address, family] of [['169.254.20.10', 4], ...FAMILIES.map((one) => [inPrefix(one), one] as const)] as const)
      for (const proto of PROTOS)
        expect(await world.ask('a-1', { proto, address, port: OWN_PORT }), address).toEqual([`node/a < ${podAddress('a-1', family)}`])
  })

  test("a node's own address that its cluster does not know has node ports", async () => {
    const pods = (peer: string): string[] => ['a-1', 'b-1', 'c-1'].map((pod) => `${pod} < ${peer}`)
    for (const proto of PROTOS) {
      const link = { proto, address: '169.254.20.10', port: NODE_PORT }
      await expect.poll(() => world.ask('a-2', link, { count: 24 })).toEqual(pods(podAddress('a-2', 4)))
      for (const family of FAMILIES) {
        const to = { proto, address: inPrefix(family), port: NODE_PORT }
        await expect.poll(() => world.ask('client', to, { count: 24 })).toEqual(pods(world.client(family)))
      }
    }
  })
})

test('what a node sends from a node port is answered, and requests to the port are the pods’', async () => {
  for (const family of FAMILIES)
    for (const proto of PROTOS) {
      const far = { proto, address: FAR[family], port: FAR_PORT }
      const answers = await world.ask('node/a', far, { localPort: NODE_PORT, count: 1 })
      expect(answers, `${proto}${family}`).toEqual([`far < ${nodeAddress('a', family)}`])
      const nodePort = { proto, address: nodeAddress('a', family), port: NODE_PORT }
      expect(await world.ask('client', nodePort, { count: 24 })).toHaveLength(3)
    }
})
