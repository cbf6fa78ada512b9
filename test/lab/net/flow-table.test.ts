// SPDX-License-Identifier: Apache-2.0
/** A flow table that clients fill becomes larger while they use it. Root. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { FAMILIES, NODE_PORT, nodeAddress, World, type Family } from './world.ts'

/** the kernel keeps up to 128 of it for each processor */
const ROOM = 16_384
/** two entries a flow: a little more than the nine tenths at which it grows */
const FLOWS = 7520
/** a pass over the table comes some ten seconds after another */
const SOON = { timeout: 60_000 }
const world = new World('flowtable')

beforeAll(() => world.up({ endpoints: ['a-1', 'b-1'], felix: { bpfMapSizeConntrack: ROOM } }))
afterAll(() => world.down())

const room = (): Promise<number> => world.metric('a', 'netplane_map_max_entries{map="np_ct"}')
const held = FAMILIES.flatMap((family) => Array.from({ length: 8 }, (_, number) => ({ family, connection: `${family}-${number}` })))

/** Every open connection has its backend's answer. */
async function goOn(backends: ReadonlyMap<string, unknown>): Promise<void> {
  for (const { connection } of held)
    expect(await world.order('client', { do: 'say', connection, timeoutMs: 2000 }), connection).toMatchObject([
      { pod: backends.get(connection) },
    ])
}

/** UDP flows, from a port each. */
async function fill(family: Family): Promise<void> {
  const to: Endpoint = { proto: 'udp', address: nodeAddress('a', family), port: NODE_PORT }
  const last = 10_000 + FLOWS / FAMILIES.length
  for (let port = 10_000; port < last; port += 100) {
    const ports = Array.from({ length: Math.min(100, last - port) }, (_, index) => port + index)
    const answers = await Promise.all(ports.map((localPort) => world.ask('client', to, { count: 1, localPort, timeoutMs: 2000 })))
    expect([...new Set(answers.flat())].sort()).toEqual(['a-1', 'b-1'].map((pod) => `${pod} < ${world.client(family)}`))
  }
}

test('connections go on while the table grows, here and into the tunnel, and a restart keeps its size', { timeout: 120_000 }, async () => {
  const backends = new Map<string, unknown>()
  for (const { family, connection } of held) {
    const to = `tcp:${hostPort(nodeAddress('a', family), NODE_PORT)}`
    const [opened] = await world.order('client', { do: 'open', connection, to, timeoutMs: 2000 })
    backends.set(connection, opened !== undefined && 'pod' in opened ? opened.pod : opened)
  }
  expect([...new Set(backends.values())].sort()).toEqual(['a-1', 'b-1'])
  expect(await room()).toBe(ROOM)
  for (const family of FAMILIES) await fill(family)
  await expect
    .poll(async () => {
      await goOn(backends)
      return await room()
    }, SOON)
    .toBe(2 * ROOM)
  await goOn(backends)
  expect(await world.drops('a', 'no_flow')).toBe(0)
  await world.lab.agents.stop('a', 'SIGTERM')
  await goOn(backends)
  await world.lab.agents.start('a')
  await expect.poll(room, SOON).toBe(2 * ROOM)
  await goOn(backends)
})
