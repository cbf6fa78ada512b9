// SPDX-License-Identifier: Apache-2.0
/** What nodes say of a network that loses the tunnel's packets, with real agents. Root. Layer: test. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { v3 } from '../../support/build.ts'
import { losses, lossesOf, LossyNetwork, SOON, wishes } from './lossy-network.ts'
import { World } from './world.ts'

const world = new World('tunprobe')
const network = new LossyNetwork(world)

/** Of node c, with rules that let nothing pass: of the tunnel, and of what asks about it, none are asked. */
const more = [v3('HostEndpoint', 'c-all', { node: 'c', interfaceName: '*' })]

beforeAll(() => world.up({ ...wishes(), more }))
afterAll(() => world.down())
afterEach(() => network.loseNothing())

test('both sides report that a network drops packets without a checksum, until they have one', { timeout: 250_000 }, async () => {
  await network.lose('udp checksum 0')
  const what = 'packets of the tunnel without a UDP checksum'
  await expect.poll(() => network.all(losses), SOON).toEqual([lossesOf(['c'], what), lossesOf(['c'], what), lossesOf(['a', 'b'], what)])
  expect(await network.said('a')).toMatch(/^to and from node c .* since \d{4}-.*Z: set bpfTunnelUDPChecksum: Enabled in FelixConfiguration/)
  world.put({ ...wishes('Enabled'), more })
  await expect.poll(() => network.all(), SOON).toEqual(['', '', ''])
})
