// SPDX-License-Identifier: Apache-2.0
/** Nodes as administrators make them: jumbo frames, a bridge that has the node's address, reverse path filtering for
 * all. Root. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { IN_TUNNEL, startCapture } from '../../../lab/traffic/capture.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { answersToLastFirst, toNodePort } from './last-first.ts'
import { FAMILIES, gateway, NODES, NODE_PORT, nodeAddress, PROTOS, serviceAddress, World, type Family, type Wishes } from './world.ts'

const SOON = { timeout: 45_000 }
const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['a-1', 'b-1', 'c-1'] }
const ANSWERS = ['a-1', 'b-1', 'c-1']
const world = new World('underlay')

/** Node a filters by the reverse path, node b has its address on a bridge. Before there are agents. */
beforeAll(async () => {
  await world.up(BASE, { agents: false, mtu: 9000, underlayMtu: 9000 })
  await world.lab.mustRun('node/a', ['sysctl', '-q', '-w', 'net.ipv4.conf.all.rp_filter=1', 'net.ipv4.conf.eth0.rp_filter=0'])
  const ip = (...args: readonly string[]): Promise<string> => world.ip('node/b', ...args)
  await ip('link', 'add', 'br-ext', 'mtu', '9000', 'type', 'bridge', 'stp_state', '0', 'mcast_snooping', '0')
  await ip('addr', 'flush', 'dev', 'eth0', 'scope', 'global')
  await ip('link', 'set', 'eth0', 'master', 'br-ext')
  await ip('link', 'set', 'br-ext', 'up')
  for (const family of FAMILIES) {
    await ip('addr', 'add', `${nodeAddress('b', family)}/${family === 4 ? 24 : 64}`, 'dev', 'br-ext', ...(family === 6 ? ['nodad'] : []))
    await ip('route', 'replace', 'default', 'via', gateway('b', family), 'dev', 'br-ext')
  }
  await world.lab.startAgents(true)
})
afterAll(() => world.down())

function everywhere(family: Family): Endpoint[] {
  return PROTOS.flatMap((proto) => [
    { proto, address: serviceAddress(family), port: 80 },
    ...NODES.map((node) => ({ proto, address: nodeAddress(node, family), port: NODE_PORT })),
  ])
}

async function answered(from: string, to: Endpoint): Promise<string[]> {
  const answers = await world.ask(from, to, { count: 24 })
  return [...new Set(answers.map((one) => one.split(' <')[0] ?? ''))].sort()
}

/** From here every service address is answered by every backend. */
async function serves(...places: readonly string[]): Promise<void> {
  for (const family of FAMILIES)
    for (const to of everywhere(family))
      for (const from of places)
        if (!['client', 'far'].includes(from) || to.port !== 80)
          await expect.poll(() => answered(from, to), { ...SOON, message: `${from} to ${to.proto} ${to.address}` }).toEqual(ANSWERS)
}

function settings(names: readonly string[]): Promise<string> {
  return world.lab.mustRun('node/a', ['sysctl', '-n', ...names.map((name) => `net.ipv4.conf.${name}.rp_filter`)])
}

test('reverse path filtering for all is handed down: pods’ veths are without, processes of the node reach services by packets too', async () => {
  const names = ['all', 'default', 'eth0', world.lab.topology.pods.find(({ key }) => key === 'default/a-1')?.iface ?? '']
  expect((await settings(names)).split('\n').slice(0, 4)).toEqual(['0', '2', '1', '0'])
  await serves('node/a', 'a-2')
  world.put({ ...BASE, felix: { bpfConnectTimeLoadBalancing: 'Disabled' } })
  await serves('node/a', 'node/b', 'a-2')
  world.put(BASE)
  // the node's sysctl.conf is read again
  await world.lab.mustRun('node/a', ['sysctl', '-q', '-w', 'net.ipv4.conf.all.rp_filter=1'])
  await world.ip('node/a', 'route', 'replace', 'default', 'via', gateway('a', 4))
  await expect.poll(async () => (await settings(['all'])).trim(), SOON).toBe('0')
})

test('a bridge that has the node’s address gets the programs, its ports none', async () => {
  await serves('client', 'far', 'b-1', 'node/b', 'c-1')
  const log = world.lab.log('b')
  expect(log).toContain(`"device":"br-ext","reason":"has the node's address ${nodeAddress('b', 4)}"`)
  expect(log).not.toContain('"hook":"eth0/ingress"')
  expect(await world.metric('b', `netplane_host_device{device="br-ext",reason="has the node's address ${nodeAddress('b', 4)}"}`)).toBe(1)
})

test('jumbo frames: nearly nine thousand bytes in one piece, through the tunnel as well', async () => {
  world.put({ ...BASE, endpoints: ['b-1'] })
  for (const family of FAMILIES) {
    // IPv6 has 20 bytes more of outer header, and so has the inner one
    const most = 9000 - (family === 4 ? 50 + 28 : 70 + 48)
    for (const to of everywhere(family).filter(({ address, proto }) => address === nodeAddress('a', family) && proto === 'udp')) {
      await expect.poll(() => answered('far', to), SOON).toEqual(['b-1'])
      const capture = await startCapture(world.lab, { place: 'node/b', device: 'eth0', filter: `${IN_TUNNEL} and greater ${most}` })
      await expect.poll(() => world.ask('far', to, { count: 2, payload: most, timeoutMs: 2000 }), SOON).toHaveLength(1)
      expect((await capture.stop(2)).filter((line) => line.includes('VXLAN')).length, `IPv${family}`).toBeGreaterThanOrEqual(1)
      expect(await world.ask('far', to, { count: 2, payload: most, timeoutMs: 2000 })).toEqual([expect.stringMatching(/^b-1 </)])
      expect(await world.ask('far', { ...to, proto: 'tcp' }, { payload: 1_000_000, reply: 3_000_000, timeoutMs: 10_000 })).toEqual([
        expect.stringMatching(/^b-1 </),
      ])
    }
  }
})

test('fragments of nearly nine thousand bytes wait for their first, as shorter ones do', async () => {
  world.put({ ...BASE, endpoints: ['b-1'] })
  for (const family of FAMILIES) {
    await expect.poll(() => answered('far', { proto: 'udp', address: nodeAddress('a', family), port: NODE_PORT }), SOON).toEqual(['b-1'])
    expect(await answersToLastFirst(world, toNodePort(world, family), 8800), `IPv${family}`).not.toEqual([])
  }
})
