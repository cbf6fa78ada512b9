// SPDX-License-Identifier: Apache-2.0
/** What nodes say of a network that loses the tunnel's packets, with real agents. Root. Layer: test. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { losses, lossesOf, LossyNetwork, SOON, wishes } from './lossy-network.ts'
import { World } from './world.ts'

const world = new World('tunprobe')
const network = new LossyNetwork(world)

beforeAll(() => world.up(wishes()))
afterAll(() => world.down())
afterEach(() => network.loseNothing())

test('both sides report that a network drops packets without a checksum, until they have one', { timeout: 250_000 }, async () => {
  await network.lose('udp checksum 0')
  const what = 'packets of the tunnel without a UDP checksum'
  await expect.poll(() => network.all(losses), SOON).toEqual([lossesOf(['c'], what), lossesOf(['c'], what), lossesOf(['a', 'b'], what)])
  expect(await network.said('a')).toMatch(/^to and from node c .* since \d{4}-.*Z: set bpfTunnelUDPChecksum: Enabled in FelixConfiguration/)
  world.put(wishes('Enabled'))
  await expect.poll(() => network.all(), SOON).toEqual(['', '', ''])
})
