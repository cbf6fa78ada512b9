// SPDX-License-Identifier: Apache-2.0
/** A service that names hosts' addresses as its own: it has its ports there, and the hosts have the others. Root.
 * Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCapture } from '../../../lab/traffic/capture.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { FAMILIES, FAR, FAR_PORT, gateway, POD_PORT, podAddress, PROTOS, nodeAddress, World, type Family, type Wishes } from './world.ts'

const SOON = { timeout: 45_000 }
/** No host has it: the nodes' router leads it to node a. */
const ADVERTISED = { 4: '192.0.2.53', 6: '2001:db8:53::1' } as const
const CLIENT_PORT = 7100
const world = new World('foreign')

const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['b-1'] }

function wishes(): Wishes {
  const names = (family: Family): string[] => [
    ...[FAR[family], gateway('a', family), world.client(family), ADVERTISED[family]],
    ...[podAddress('c-1', family), podAddress('a-2', family), nodeAddress('b', family)],
  ]
  const address = (family: Family): string => (family === 4 ? '10.96.28.53' : 'fd00:96:28::53')
  const others = [{ name: 'thief', address, endpoints: ['b-1'] as const, spec: { externalIPs: FAMILIES.flatMap(names) } }]
  return { ...BASE, others }
}

beforeAll(async () => {
  await world.up(BASE)
  await world.serve('far', FAR_PORT)
  await world.serve('client', CLIENT_PORT)
})
afterAll(() => world.down())

test('the service has its ports at the hosts’ addresses', async () => {
  world.put(wishes())
  for (const place of ['a-1', 'node/a', 'c-1', 'node/c'])
    for (const family of FAMILIES)
      for (const proto of PROTOS) {
        const ask = async (): Promise<string> => (await world.ask(place, { proto, address: FAR[family], port: 80 })).join()
        await expect.poll(ask, { ...SOON, message: `${place} IPv${family} ${proto}` }).toMatch(/^b-1 </)
      }
})

test('pods and nodes reach the hosts on every other port, and by ping', async () => {
  for (const place of ['a-1', 'node/a', 'c-1', 'node/c'])
    for (const family of FAMILIES) {
      const hosts: readonly (readonly [name: string, address: string, port: number])[] = [
        ['far', FAR[family], FAR_PORT],
        ['client', world.client(family), CLIENT_PORT],
        ['c-1', podAddress('c-1', family), POD_PORT],
        ['a-2', podAddress('a-2', family), POD_PORT],
      ]
      for (const [name, address, port] of hosts)
        for (const proto of PROTOS)
          expect((await world.ask(place, { proto, address, port })).join(), `${place} to ${name}, IPv${family} ${proto}`).toMatch(
            `${name} <`,
          )
      for (const address of [...hosts.map(([, host]) => host), gateway('a', family), nodeAddress('b', family)])
        expect(await world.ping(place, address), `${place} pings ${address}`).toBe(true)
    }
})

test('what the router leads to a node, for a port that the service does not have, does not go back', async () => {
  for (const family of FAMILIES) {
    const to: Endpoint = { proto: 'udp', address: ADVERTISED[family], port: 99 }
    await world.ip('client', 'route', 'replace', ADVERTISED[family], 'via', nodeAddress('a', family))
    const before = await world.drops('a', 'stray_service')
    const capture = await startCapture(world.lab, { place: 'node/a', device: 'eth0', filter: `udp and dst host ${ADVERTISED[family]}` })
    expect(await world.ask('client', to, { count: 1, timeoutMs: 300 })).toEqual(['TIMEOUT'])
    expect(await capture.stop(2, 500)).toHaveLength(1)
    expect(await world.drops('a', 'stray_service')).toBe(before + 1)
    expect(await world.ask('client', { ...to, port: 80 })).toEqual([`b-1 < ${world.client(family)}`])
  }
})
