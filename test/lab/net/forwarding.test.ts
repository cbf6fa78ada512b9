// SPDX-License-Identifier: Apache-2.0
/** Ways between pods, nodes and the world: pools, the overlay behind a router, masquerade, whose source is believed,
 * devices. Root. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import { IN_TUNNEL, startCapture } from '../../../lab/traffic/capture.ts'
import { mustRun } from '../../../lab/processes/command.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { concat, udp } from '../../../testkit/packets/packet.ts'
import {
  FAMILIES,
  FAR,
  FAR_PORT,
  gateway,
  NODE_PORT,
  nodeAddress,
  PODS,
  podAddress,
  POD_PORT,
  PROTOS,
  World,
  type Family,
  type PodName,
  type Wishes,
} from './world.ts'

const SOON = { timeout: 45_000 }
const world = new World('forward')
const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['a-1', 'b-1', 'c-1'] }

beforeAll(async () => {
  await world.up(BASE)
  await world.serve('far', FAR_PORT)
})
afterAll(() => world.down())

function pod(name: PodName, family: Family): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address: podAddress(name, family), port: POD_PORT }))
}

function outside(family: Family, port = FAR_PORT): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address: FAR[family], port }))
}

/** Every pod and node reaches every pod, which sees its own address. */
async function allReach(): Promise<void> {
  for (const family of FAMILIES)
    for (const to of PODS)
      for (const endpoint of pod(to, family)) {
        for (const from of PODS)
          if (from !== to)
            await expect
              .poll(() => world.ask(from, endpoint), { ...SOON, message: `${from} to ${to} IPv${family}` })
              .toEqual([`${to} < ${podAddress(from, family)}`])
        for (const node of ['a', 'b', 'c'] as const)
          await expect
            .poll(() => world.ask(`node/${node}`, endpoint), { ...SOON, message: `node ${node} to ${to} IPv${family}` })
            .toEqual([`${to} < ${nodeAddress(node, family)}`])
      }
}

/** Whether what pod a-1 sends to the pod crosses the underlay in the tunnel, alone or not at all. */
async function tunnelled(to: PodName, family: Family): Promise<boolean> {
  const capture = await startCapture(world.lab, {
    place: 'node/a',
    device: 'eth0',
    filter: `(${IN_TUNNEL}) or dst host ${podAddress(to, family)}`,
  })
  for (const endpoint of pod(to, family)) await world.ask('a-1', endpoint)
  const lines = await capture.stop(4)
  expect(lines.length, 'packets').toBeGreaterThan(3)
  return lines.some((line) => line.includes('.4789: VXLAN'))
}

async function routesOf(family: Family): Promise<string> {
  return await world.ip('node/a', `-${family}`, 'route', 'show', 'proto', '80')
}

describe('pools', () => {
  test('CrossSubnet: the tunnel for nodes beyond the router only, in both families', async () => {
    await allReach()
    for (const family of FAMILIES) {
      expect(await tunnelled('b-1', family)).toBe(false)
      expect(await tunnelled('c-1', family)).toBe(true)
      expect(await routesOf(family)).toContain(`via ${nodeAddress('b', family)}`)
      expect(await routesOf(family)).toContain(`via ${gateway('a', family)}`)
    }
  })

  test('Always: the tunnel for all nodes', async () => {
    world.put({ ...BASE, pools: { vxlanMode: 'Always', natOutgoing: true } })
    for (const family of FAMILIES) await expect.poll(() => tunnelled('b-1', family), SOON).toBe(true)
    await allReach()
  })

  test('Never: routes to neighbours are the agent’s, to others the network’s', async () => {
    world.put({ ...BASE, pools: { vxlanMode: 'Never', natOutgoing: true } })
    for (const family of FAMILIES) {
      await expect.poll(() => routesOf(family), SOON).not.toContain(podAddress('c-1', family).replace(/1$/, '0'))
      for (const [node, range] of [
        ['a', 1],
        ['b', 2],
        ['c', 3],
      ] as const) {
        const cidr = family === 4 ? `10.28.${range}.0/24` : `fd00:2800:${range}::/64`
        await world.ip('fabric', 'route', 'replace', cidr, 'via', nodeAddress(node, family))
      }
    }
    for (const family of FAMILIES)
      for (const name of ['b-1', 'c-1'] as const) await expect.poll(() => tunnelled(name, family), SOON).toBe(false)
    await allReach()
    expect((await world.lab.agents.readiness('a')).text).toBe('')
    for (const family of FAMILIES)
      await world.ip('fabric', `-${family}`, 'route', 'flush', 'root', family === 4 ? '10.28.0.0/16' : 'fd00:2800::/32')
    world.put(BASE)
    for (const family of FAMILIES) await expect.poll(() => tunnelled('c-1', family), SOON).toBe(true)
  })
})

describe('to the outside', () => {
  test('as the node, from ports that are kept for it, and to pools with their own address', async () => {
    for (const family of FAMILIES)
      for (const endpoint of outside(family)) {
        const outcomes = await world.outcomes('a-1', endpoint, { count: 10 })
        for (const outcome of outcomes) {
          const [, peer = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec('peer' in outcome ? outcome.peer : '') ?? []
          expect(peer).toBe(nodeAddress('a', family))
          expect(Number(port)).toBeGreaterThanOrEqual(20_000)
          expect(Number(port)).toBeLessThanOrEqual(29_999)
        }
      }
    for (const family of FAMILIES) expect(await world.ping('a-1', FAR[family])).toBe(true)
  })

  test('when all ports are in use further flows to that address are dropped and counted, those to others are not', async () => {
    // none of the usual ones, which could be there by chance
    world.put({ ...BASE, felix: { bpfPSNATPorts: '12000:12003' } })
    const once = async (to: Endpoint, localPort: number): Promise<string> => {
      const [outcome] = await world.outcomes('a-1', to, { count: 1, timeoutMs: 400, localPort })
      return outcome !== undefined && 'peer' in outcome ? (/:(\d+)$/.exec(outcome.peer)?.[1] ?? '') : 'failed'
    }
    for (const family of FAMILIES) {
      const [, udp] = outside(family)
      if (udp === undefined) throw new Error('no UDP')
      // a port of its own for each attempt, which no other test's flow has: flows live on
      let next = 14_000
      await expect.poll(() => once(udp, next++), SOON).toMatch(/^1200[0-3]$/)
      const before = await world.drops('a', 'port_collision')
      const used = new Set<string>()
      let failed = 0
      while (failed === 0 && next < 14_100) {
        const port = await once(udp, next++)
        if (port === 'failed') failed++
        else used.add(port)
      }
      expect([...used].filter((port) => !/^1200[0-3]$/.test(port))).toEqual([])
      expect(await world.drops('a', 'port_collision')).toBeGreaterThan(before)
      expect(await once({ ...udp, port: FAR_PORT + 1 }, next++)).toMatch(/^1200[0-3]$/)
    }
    world.put(BASE)
    let next = 15_000
    for (const family of FAMILIES) await expect.poll(() => once(outside(family)[1] ?? fail(), next++), SOON).toMatch(/^2\d{4}$/)
  })

  test('without natOutgoing as themselves', async () => {
    world.put({ ...BASE, pools: { vxlanMode: 'CrossSubnet', natOutgoing: false } })
    for (const family of FAMILIES) {
      const capture = await startCapture(world.lab, { place: 'far', device: 'eth0', filter: `src host ${podAddress('a-1', family)}` })
      await expect.poll(() => world.ask('a-1', outside(family)[1] ?? fail(), { count: 1, timeoutMs: 300 }), SOON).toEqual(['TIMEOUT'])
      expect(await capture.stop(1)).not.toEqual([])
    }
    world.put(BASE)
    for (const family of FAMILIES)
      await expect.poll(() => world.ask('a-1', outside(family)[1] ?? fail()), SOON).toEqual([`far < ${nodeAddress('a', family)}`])
  })
})

function fail(): never {
  throw new Error('no such endpoint')
}

describe('a node with a second network', () => {
  const own = (family: Family): string => (family === 4 ? '192.168.77.1' : 'fd00:77::1')
  const peer = (family: Family): string => (family === 4 ? '192.168.77.2' : 'fd00:77::2')
  const bits = (family: Family): number => (family === 4 ? 24 : 64)

  beforeAll(async () => {
    const { client, nodes } = world.lab.topology
    const [first] = nodes
    await mustRun(['ip', '-n', first?.netns ?? '', 'link', 'add', 'eth1', 'type', 'veth', 'peer', 'name', 'eth1', 'netns', client.netns])
    for (const [place, address] of [
      ['node/a', own],
      ['client', peer],
    ] as const) {
      for (const family of FAMILIES)
        await world.ip(place, 'addr', 'add', `${address(family)}/${bits(family)}`, 'dev', 'eth1', ...(family === 6 ? ['nodad'] : []))
      await world.ip(place, 'link', 'set', 'eth1', 'up')
    }
  })

  test('is served there, which the log and a metric say', async () => {
    for (const family of FAMILIES)
      for (const proto of PROTOS)
        await expect
          .poll(() => world.ask('client', { proto, address: own(family), port: NODE_PORT }, { count: 30 }), SOON)
          .toEqual(['a-1', 'b-1', 'c-1'].map((name) => `${name} < ${peer(family)}`))
    const said = world.lab
      .log('a')
      .split('\n')
      .filter((line) => line.includes('"device.selected"'))
    expect(said.some((line) => line.includes('"device":"eth0","reason":"has the node\'s address'))).toBe(true)
    expect(said.some((line) => line.includes('"device":"eth1","reason":"has the network of 192.168.77.1/24"'))).toBe(true)
    expect(await world.metric('a', 'netplane_host_device{device="eth1",reason="has the network of 192.168.77.1/24"}')).toBe(1)
  })

  test.each(FAMILIES)(
    'IPv%i, Strict: what comes by another device than its route is dropped, Loose: what has no route at all',
    async (family) => {
      const [node, client] = [nodeAddress('a', family), world.client(family)]
      const to: Endpoint = { proto: 'udp', address: node, port: NODE_PORT }
      const knock = (): Promise<string[]> => world.ask('client', to, { count: 4, timeoutMs: 300 })
      // what the client sends to node a's first address now comes by the second network
      await world.ip('client', 'route', 'add', node, 'via', own(family), 'src', client)
      const normal = ['a-1', 'b-1', 'c-1'].map((name) => `${name} < ${client}`)
      const some = async (): Promise<boolean> => (await knock()).every((one) => normal.includes(one))
      await expect.poll(some, SOON).toBe(true)
      world.put({ ...BASE, felix: { bpfEnforceRPF: 'Strict' } })
      const before = await world.drops('a', 'reverse_path')
      await expect.poll(knock, SOON).toEqual(['TIMEOUT'])
      expect(await world.drops('a', 'reverse_path')).toBeGreaterThan(before)
      world.put({ ...BASE, felix: { bpfEnforceRPF: 'Loose' } })
      await expect.poll(some, SOON).toBe(true)
      await world.ip('node/a', 'route', 'add', 'unreachable', client)
      await expect.poll(knock, SOON).toEqual(['TIMEOUT'])
      await world.ip('node/a', 'route', 'del', 'unreachable', client)
      await world.ip('client', 'route', 'del', node)
      world.put(BASE)
    },
  )
})

describe('a frame with a VLAN tag', () => {
  /** Puts the frame on the place's link as it is; Node has no such sockets. */
  async function put(place: string, frame: Uint8Array): Promise<void> {
    const script = `socket(my $s, 17, 3, 0) or die "socket: $!"; my $name = pack("a16 x16", "eth0"); ioctl($s, 0x8933, $name) or die "ioctl: $!";
      send($s, pack("H*", $ARGV[0]), 0, pack("S n i S C C a8", 17, 3, unpack("x16 i", $name), 0, 0, 0, "")) or die "send: $!"`
    await world.lab.mustRun(place, ['perl', '-e', script, Buffer.from(frame).toString('hex')])
  }

  const [VLAN, PRIORITY, PROVIDER] = [
    [0x81, 0, 0, 7],
    [0x81, 0, 0xe0, 0],
    [0x88, 0xa8, 0x30, 0],
  ]
  function tagged(frame: Uint8Array, ...tags: readonly (readonly number[])[]): Uint8Array {
    return concat([frame.subarray(0, 12), Uint8Array.from(tags.flat()), frame.subarray(12)])
  }

  const served = (): Promise<number> => world.metric('a', 'netplane_packets_total{event="flow_service"}')

  test.each(FAMILIES)('IPv%i: from a pod it is dropped and counted, from the network it is nothing to us [once]', async (family) => {
    const [, dst = ''] = /ether ([0-9a-f:]+)/.exec(await world.ip('node/a', 'link', 'show', 'eth0')) ?? []
    const macs = { src: '02:00:00:00:00:07', dst }
    const toNode = hostPort(nodeAddress('a', family), NODE_PORT)
    const outside = udp(hostPort(world.client(family), 17_000 + family), toNode, { macs, payload: '{}\n' })
    const inside = udp(hostPort(podAddress('a-1', family), 17_000 + family), toNode, { macs, payload: '{}\n' })
    const before = { drops: await world.drops('a', 'vlan'), served: await served() }
    await put('client', tagged(outside, VLAN))
    await put('a-1', tagged(inside, VLAN))
    await expect.poll(() => world.drops('a', 'vlan'), SOON).toBe(before.drops + 1)
    expect(await served()).toBe(before.served)
    // the same without the tag
    await put('client', outside)
    await expect.poll(served, SOON).toBe(before.served + 1)
    await put('a-1', inside)
    await expect.poll(served, SOON).toBe(before.served + 2)
    expect(await world.drops('a', 'vlan')).toBe(before.drops + 1)
  })

  test.each(FAMILIES)('IPv%i: of VLAN 0 it is as good as one without, beside the frame and within it', async (family) => {
    const [, dst = ''] = /ether ([0-9a-f:]+)/.exec(await world.ip('node/a', 'link', 'show', 'eth0')) ?? []
    const macs = { src: '02:00:00:00:00:07', dst }
    const toNode = hostPort(nodeAddress('a', family), NODE_PORT)
    for (const [index, tags] of [[PRIORITY], [PROVIDER], [PRIORITY, PRIORITY], [PROVIDER, PRIORITY, PRIORITY]].entries()) {
      for (const [place, address] of [
        ['client', world.client(family)],
        ['a-1', podAddress('a-1', family)],
      ] as const) {
        const before = await served()
        await put(place, tagged(udp(hostPort(address, 17_100 + index), toNode, { macs, payload: '{}\n' }), ...tags))
        await expect.poll(served, SOON).toBe(before + 1)
      }
    }
    const drops = await world.drops('a', 'vlan')
    const inside = udp(hostPort(podAddress('a-1', family), 17_110), toNode, { macs })
    await put('a-1', tagged(inside, PRIORITY, VLAN))
    await expect.poll(() => world.drops('a', 'vlan'), SOON).toBe(drops + 1)
  })
})
