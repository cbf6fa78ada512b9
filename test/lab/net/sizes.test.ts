// SPDX-License-Identifier: Apache-2.0
/** What does not fit the tunnel, or the path beneath it: cut where it may be, told where not. Root. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mustRun } from '../../../lab/processes/command.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { answersToLastFirst, fromPod, toNodePort } from './last-first.ts'
import { FAMILIES, NODE_PORT, nodeAddress, podAddress, POD_PORT, serviceAddress, World, type Family, type Wishes } from './world.ts'

const SOON = { timeout: 45_000 }
const BASE: Wishes = {
  pools: { vxlanMode: 'Always', natOutgoing: true },
  endpoints: ['c-1'],
  felix: { bpfConnectTimeLoadBalancing: 'Disabled' },
}
/** Of the router between a and c. */
const NARROW = 1400
/** One fragment, just too long for one, and made of fragments that each are. */
const SIZES = [1400, 1472, 4000, 8000]
/** Bytes in a fragment of three. */
const PART = 1000
const world = new World('sizes')

beforeAll(() => world.up(BASE))
afterAll(() => world.down())

function endpointOf(address: string, port: number): Endpoint {
  return { proto: 'udp', address, port }
}

/** To a node port as clients outside, to a service and to its pod as pods do. */
function ways(family: Family): readonly (readonly [from: string, to: Endpoint])[] {
  const [pod, service] = [endpointOf(podAddress('c-1', family), POD_PORT), endpointOf(serviceAddress(family), 80)]
  return [
    ['far', endpointOf(nodeAddress('a', family), NODE_PORT)],
    ['client', endpointOf(nodeAddress('a', family), NODE_PORT)],
    ['a-2', service],
    ['a-2', pod],
    ['node/a', pod],
  ]
}

async function answered([from, to]: readonly [string, Endpoint], size: { payload: number; reply: number }): Promise<void> {
  const ask = async (): Promise<string[]> =>
    (await world.ask(from, to, { count: 2, timeoutMs: 2000, ...size })).map((one) => one.slice(0, 3))
  await expect.poll(ask, { ...SOON, message: `${from} to ${to.address}, ${JSON.stringify(size)}` }).toEqual(['c-1'])
}

test('IPv4 datagrams that may be cut pass the tunnel at any size, in both directions', async () => {
  for (const place of ['far', 'client', 'node/a', 'a-2', 'c-1'])
    await world.lab.mustRun(place, ['sysctl', '-q', '-w', 'net.ipv4.ip_no_pmtu_disc=1'])
  for (const way of ways(4)) {
    await answered(way, { payload: 64, reply: 64 })
    for (const size of SIZES) {
      // the first is answered: nothing has been lost on its way
      expect(await world.ask(way[0], way[1], { count: 1, timeoutMs: 2000, payload: size, reply: size }), `${way[0]} ${size}`).toEqual([
        expect.stringMatching(/^c-1 </),
      ])
    }
  }
})

test('fragments that come before their first wait for it', async () => {
  for (const way of FAMILIES.flatMap((family) => [toNodePort(world, family), ...fromPod(world, family)]))
    expect(await answersToLastFirst(world, way, PART), `${way.from} to ${way.to}`).not.toEqual([])
})

test('a path between nodes that is narrower than their devices is no black hole', async () => {
  const { fabric } = world.lab.topology
  for (const family of FAMILIES) {
    const of = family === 4 ? 32 : 128
    for (const node of ['a', 'c'] as const)
      await mustRun([
        'ip',
        '-n',
        fabric.netns,
        'route',
        'replace',
        `${nodeAddress(node, family)}/${of}`,
        'dev',
        'br0',
        'mtu',
        String(NARROW),
      ])
    for (const way of ways(family)) {
      await answered(way, { payload: 1350, reply: 1350 })
      await answered([way[0], { ...way[1], proto: 'tcp' }], { payload: 100_000, reply: 300_000 })
    }
  }
})
