// SPDX-License-Identifier: Apache-2.0
/** How services answer at the edge: clients behind a router, errors on the way, what is no service's, backends that
 * go. Root. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IN_TUNNEL, startCapture } from '../../../lab/traffic/capture.ts'
import { mustRun } from '../../../lab/processes/command.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { hostPort } from '#lib/base/ip.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import {
  FAMILIES,
  FAR,
  NODE_PORT,
  nodeAddress,
  PROTOS,
  serviceAddress,
  World,
  type Family,
  type NodeName,
  type PodName,
  type Wishes,
} from './world.ts'

/** Other settings are other programs, and loading them on three nodes takes its time. */
const SOON = { timeout: 45_000 }
const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['b-1'] }
const DSR: Wishes = { ...BASE, felix: { bpfExternalServiceMode: 'DSR' } }
const world = new World('entry')

beforeAll(() => world.up(BASE))
afterAll(() => world.down())

function entry(node: NodeName, family: Family): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address: nodeAddress(node, family), port: NODE_PORT }))
}

/** What leaves node b towards this address while it is asked at node a's node port: "direct" as node a, "tunnel", in
 * order. */
async function wayBack(from: 'client' | 'far', family: Family): Promise<string> {
  const direct = `(src host ${nodeAddress('a', family)} and src port ${NODE_PORT})`
  const tunnel = `(src host ${nodeAddress('b', family)} and ${IN_TUNNEL})`
  const capture = await startCapture(world.lab, { place: 'node/b', device: 'eth0', filter: `${direct} or ${tunnel}` })
  const address = from === 'far' ? FAR[family] : world.client(family)
  for (const to of entry('a', family)) expect(await world.ask(from, to, { count: 8 })).toEqual([`b-1 < ${address}`])
  const lines = await capture.stop(16)
  return [...new Set(lines.filter((line) => !/8080 >/.test(line)).map((line) => (line.includes('4789') ? 'tunnel' : 'direct')))].join()
}

describe('DSR', () => {
  test('clients beside the nodes and behind a router are answered by the backend’s node, those opted out through the tunnel', async () => {
    world.put({
      ...DSR,
      felix: { ...DSR.felix, bpfDSROptoutCIDRs: FAMILIES.map((family) => `${world.client(family)}/${family === 4 ? 32 : 128}`) },
    })
    for (const family of FAMILIES) {
      await expect.poll(() => wayBack('far', family), SOON).toBe('direct')
      await expect.poll(() => wayBack('client', family), SOON).toBe('tunnel')
    }
    world.put(DSR)
    for (const family of FAMILIES) await expect.poll(() => wayBack('client', family), SOON).toBe('direct')
    world.put(BASE)
    for (const family of FAMILIES) await expect.poll(() => wayBack('far', family), SOON).toBe('tunnel')
  })
})

describe('ICMP errors through another node', () => {
  test('a closed port of the backend is refused at the service’s address', async () => {
    world.put({ ...BASE, targetPort: 8099 })
    for (const family of FAMILIES)
      for (const from of ['client', 'far', 'a-1'])
        for (const to of entry('a', family))
          await expect.poll(() => world.ask(from, to), { ...SOON, message: `${from} IPv${family}` }).toEqual(['ECONNREFUSED'])
    world.put(BASE)
    for (const family of FAMILIES)
      for (const to of entry('a', family)) await expect.poll(() => world.ask('far', to), SOON).toEqual([`b-1 < ${FAR[family]}`])
  })

  test('a router’s "too big" about the service’s answer reaches the backend', async () => {
    const { fabric, far } = world.lab.topology
    await mustRun(['ip', '-n', fabric.netns, 'link', 'set', far.port, 'mtu', '1300'])
    for (const family of FAMILIES)
      for (const node of ['a', 'b'] as const)
        for (const to of entry(node, family)) {
          const ask = (): Promise<string[]> =>
            world.ask('far', to, { count: 2, reply: to.proto === 'tcp' ? 300_000 : 1350, timeoutMs: 3000 })
          await expect.poll(ask, { ...SOON, message: `${to.proto} IPv${family} at ${node}` }).toEqual([`b-1 < ${FAR[family]}`])
        }
    await mustRun(['ip', '-n', fabric.netns, 'link', 'set', far.port, 'mtu', '1500'])
  })
})

describe('an endpoint on no known node', () => {
  test('is asked by the node that the client came to, by route or overlay', async () => {
    const port = NODE_PORT + 1
    const address = (family: Family): string => (family === 4 ? '10.96.28.77' : 'fd00:96:28::77')
    for (const pod of ['b-1', 'c-1'] as const) {
      const handmade = { name: 'handmade', address, endpoints: [pod], nodeless: true, nodePort: port, spec: { type: 'NodePort' } }
      world.put({ ...BASE, others: [handmade] })
      for (const family of FAMILIES)
        for (const from of ['client', 'far'])
          for (const to of entry('a', family))
            await expect.poll(() => world.ask(from, { ...to, port }), SOON).toEqual([`${pod} < ${nodeAddress('a', family)}`])
    }
    world.put(BASE)
  })
})

describe('a backend that goes', () => {
  test('its connections get a RST', async () => {
    const say = (family: Family) => world.order('client', { do: 'say', connection: `held${family}`, timeoutMs: 3000 })
    for (const family of FAMILIES) {
      const to = `tcp:${hostPort(nodeAddress('b', family), NODE_PORT)}`
      const opened = await world.order('client', { do: 'open', connection: `held${family}`, to, timeoutMs: 2000 })
      expect(opened).toMatchObject([{ pod: 'b-1' }])
    }
    world.put({ ...BASE, endpoints: ['a-1'], without: ['b-1'] })
    for (const family of FAMILIES)
      await expect.poll(() => world.ask('client', entry('b', family)[0] ?? never()), SOON).toEqual([`a-1 < ${world.client(family)}`])
    // the pod itself lives on in the lab: until the flow is looked at again it may answer
    for (const family of FAMILIES)
      await expect.poll(() => say(family), { interval: 100, message: `IPv${family}` }).toEqual([{ failed: 'ECONNRESET' }])
    world.put(BASE)
    for (const family of FAMILIES)
      await expect.poll(() => world.ask('client', entry('a', family)[0] ?? never()), SOON).toEqual([`b-1 < ${world.client(family)}`])
  })

  test('a UDP flow leaves it within a second, also into and out of the tunnel', async () => {
    /** From when the change was in the map, as a new flow tells, to when the old flow is led to the pod; with the time
     * that unanswered questions take. */
    const leavesAfter = async (family: Family, pod: PodName): Promise<number> => {
      const to = entry('a', family)[1] ?? never()
      world.put({ ...BASE, endpoints: [pod] })
      const seen = { fresh: 0, old: 0 }
      const wanted = `${pod} < ${world.client(family)}`
      const look = async (): Promise<boolean> => {
        const [fresh] = await world.ask('client', to, { count: 1, timeoutMs: 100 })
        if (fresh === wanted) seen.fresh ||= performance.now()
        const [old] = await world.ask('client', to, { count: 1, timeoutMs: 100, localPort: 12_000 + family })
        if (old === wanted) seen.old ||= performance.now()
        return seen.old !== 0 && seen.fresh !== 0
      }
      await expect.poll(look, { timeout: 45_000, interval: 10, message: `IPv${family} to ${pod}` }).toBe(true)
      return seen.old - seen.fresh
    }
    for (const family of FAMILIES)
      for (const [pod, before] of [
        ['a-1', 'b-1'],
        ['b-1', 'a-1'],
        ['c-1', 'b-1'],
      ] as const)
        await withinBestOfThree(1500, async (tries) => {
          if (tries > 1) await leavesAfter(family, before)
          return await leavesAfter(family, pod)
        })
    world.put(BASE)
  })
})

describe('what is no service’s', () => {
  const clusterPort = (family: Family, port: number): Endpoint => ({ proto: 'udp', address: serviceAddress(family), port })

  test('a service’s address on another port: dropped, refused or passed on, as the settings say', async () => {
    for (const family of FAMILIES) await world.ip('client', 'route', 'replace', serviceAddress(family), 'via', nodeAddress('a', family))
    /** How often the client's one datagram is seen at the node: once when it comes, again for each time it leaves. */
    const seen = async (family: Family): Promise<number> => {
      const capture = await startCapture(world.lab, {
        place: 'node/a',
        device: 'eth0',
        filter: `udp and dst host ${serviceAddress(family)}`,
      })
      await world.ask('client', clusterPort(family, 99), { count: 1, timeoutMs: 300 })
      return (await capture.stop(2, 500)).length
    }
    for (const family of FAMILIES) {
      const before = await world.drops('a', 'stray_service')
      expect(await world.ask('client', clusterPort(family, 99), { count: 1, timeoutMs: 300 })).toEqual(['TIMEOUT'])
      expect(await world.drops('a', 'stray_service')).toBe(before + 1)
      expect(await seen(family)).toBe(1)
      expect(await world.ask('a-1', clusterPort(family, 99), { count: 1, timeoutMs: 300 })).toEqual(['TIMEOUT'])
    }
    world.put({ ...BASE, felix: { serviceLoopPrevention: 'Reject' } })
    for (const family of FAMILIES)
      for (const from of ['client', 'a-1'])
        await expect.poll(() => world.ask(from, clusterPort(family, 99)), SOON).toEqual(['ECONNREFUSED'])
    world.put({ ...BASE, felix: { serviceLoopPrevention: 'Disabled' } })
    for (const family of FAMILIES) await expect.poll(() => seen(family), SOON).toBeGreaterThan(1)
    world.put(BASE)
    for (const family of FAMILIES) await expect.poll(() => seen(family), SOON).toBe(1)
  })

  test('a cache of the node answers in place of an excluded service', async () => {
    for (const family of FAMILIES)
      await world.ip('node/a', 'addr', 'add', `${serviceAddress(family)}/${family === 4 ? 32 : 128}`, 'dev', 'lo')
    await world.serve('node/a', 80)
    const answers = async (place: string, pod: string): Promise<void> => {
      for (const family of FAMILIES)
        for (const proto of PROTOS) {
          const ask = async (): Promise<string | undefined> =>
            (await world.ask(place, { proto, address: serviceAddress(family), port: 80 }))[0]?.split(' <')[0]
          await expect.poll(ask, { ...SOON, message: `${place} IPv${family} ${proto}` }).toBe(pod)
        }
    }
    for (const place of ['a-1', 'node/a', 'a-2']) await answers(place, 'b-1')
    for (const wishes of [
      { annotations: { 'netplane.io/nat-exclude-service': 'true' } },
      { felix: { bpfExcludeCIDRsFromNAT: ['10.96.28.0/24', 'fd00:96:28::/64'] } },
    ]) {
      world.put({ ...BASE, ...wishes })
      for (const place of ['a-1', 'node/a', 'a-2']) await answers(place, 'node/a')
      world.put(BASE)
      for (const place of ['a-1', 'node/a']) await answers(place, 'b-1')
    }
  })
})

describe('what is refused', () => {
  test('SCTP ports and IPIP pools are reported with their reason, the rest works', async () => {
    const rejected = (): Promise<number> => world.metric('a', 'netplane_rejected_objects{source="directory"}')
    const ports = ['SCTP', 'TCP', 'UDP'].map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      targetPort: 8080,
      nodePort: NODE_PORT,
    }))
    world.put({ ...BASE, pools: { ipipMode: 'Always', natOutgoing: true }, service: { ports } })
    await expect.poll(rejected, SOON).toBeGreaterThanOrEqual(3)
    const log = world.lab.log('a')
    for (const reason of [/SCTP/, /ipipMode.*is not supported: vxlanMode is/])
      expect(log.split('\n').filter((line) => line.includes('object.rejected') && reason.test(line))).not.toEqual([])
    for (const family of FAMILIES)
      for (const to of entry('a', family)) expect(await world.ask('client', to)).toEqual([`b-1 < ${world.client(family)}`])
    world.put(BASE)
    await expect.poll(rejected, SOON).toBe(0)
  })
})

describe('a change of MTU', () => {
  test('on all devices of the underlay is followed at once, by open connections too', async () => {
    for (const family of FAMILIES) {
      const to = `tcp:${hostPort(nodeAddress('a', family), NODE_PORT)}`
      expect(await world.order('far', { do: 'open', connection: `mtu${family}`, to, timeoutMs: 2000 })).toMatchObject([{ pod: 'b-1' }])
    }
    const { fabric, nodes, client } = world.lab.topology
    for (const host of [...nodes, client]) {
      await mustRun(['ip', '-n', host.netns, 'link', 'set', 'eth0', 'mtu', '1400'])
      await mustRun(['ip', '-n', fabric.netns, 'link', 'set', host.port, 'mtu', '1400'])
    }
    for (const family of FAMILIES) {
      const text = JSON.stringify({ reply: 300_000 }).padEnd(100_000)
      expect(await world.order('far', { do: 'say', connection: `mtu${family}`, text, timeoutMs: 10_000 }), `IPv${family}`).toMatchObject([
        { pod: 'b-1' },
      ])
      for (const from of ['far', 'client'])
        for (const to of entry('a', family)) {
          // fits the underlay, and not the tunnel in it
          const size = to.proto === 'tcp' ? { payload: 100_000, reply: 300_000 } : { payload: 1340, reply: 1240 }
          const address = from === 'far' ? FAR[family] : world.client(family)
          await expect
            .poll(() => world.ask(from, to, { count: 2, timeoutMs: 2000, ...size }), {
              ...SOON,
              message: `${from} ${to.proto} IPv${family}`,
            })
            .toEqual([`b-1 < ${address}`])
        }
    }
  })
})

function never(): never {
  throw new Error('no such endpoint')
}
