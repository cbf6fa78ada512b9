// SPDX-License-Identifier: Apache-2.0
/** A node's own socket asks a service and its pod itself from one port. Root. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { FAMILIES, NODE_PORT, nodeAddress, POD_PORT, podAddress, serviceAddress, World, type Family } from './world.ts'

const NODE = 'a'
const PORT = 13_000
const world = new World('oneport')

beforeAll(() => world.up({}))
afterAll(() => world.down())

/** Its packets are translated. */
function service(family: Family): Endpoint {
  return { proto: 'udp', address: serviceAddress(family), port: 80 }
}

/** The socket is: what it sends is for the pod. */
function ownNodePort(family: Family): Endpoint {
  return { proto: 'udp', address: nodeAddress(NODE, family), port: NODE_PORT }
}

async function asked(to: Endpoint, localPort: number): Promise<readonly unknown[]> {
  return await world.outcomes(`node/${NODE}`, to, { count: 1, localPort, timeoutMs: 1000 })
}

// each from a port of its own: for less than a second a flow stays with the pod that it had
test.each([
  ['a-1', PORT + 1],
  ['b-1', PORT + 2],
] as const)('an endpoint that takes over, %s, answers all of them', async (pod, port) => {
  world.put({ endpoints: [pod] })
  for (const family of FAMILIES) {
    await expect.poll(() => asked(service(family), PORT)).toMatchObject([{ pod }])
    const itself: Endpoint = { proto: 'udp', address: podAddress(pod, family), port: POD_PORT }
    for (const to of [service(family), ownNodePort(family), itself, service(family)])
      expect(await asked(to, port), to.address).toMatchObject([{ pod }])
  }
})
