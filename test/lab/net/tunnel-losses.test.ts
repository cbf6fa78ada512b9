// SPDX-License-Identifier: Apache-2.0
/** What nodes say of a network that loses nothing, large packets, or all packets one way, with real agents. Root.
 * Layer: test. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { losses, lossesOf, LossyNetwork, SOON, wishes } from './lossy-network.ts'
import { World } from './world.ts'

const ROUNDS_MS = 50_000
const world = new World('tunlosses')
const network = new LossyNetwork(world)

beforeAll(() => world.up(wishes()))
afterAll(() => world.down())
afterEach(() => network.loseNothing())

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('the condition holds in a network that loses nothing', async () => {
  await wait(ROUNDS_MS)
  expect(await network.all()).toEqual(['', '', ''])
})

test('nodes report a network that drops large packets in silence, with their size', { timeout: 200_000 }, async () => {
  await network.lose('meta length > 1400')
  const what = 'large packets of the tunnel (1500 bytes)'
  await expect.poll(() => network.all(losses), SOON).toEqual([lossesOf(['c'], what), lossesOf(['c'], what), lossesOf(['a', 'b'], what)])
  await network.loseNothing()
  await expect.poll(() => network.all(), SOON).toEqual(['', '', ''])
})

test('both sides report that all packets are lost one way, while the agent at the other end runs', { timeout: 200_000 }, async () => {
  await network.lose('', ['daddr'])
  const what = 'all packets of the tunnel'
  await expect
    .poll(() => network.all(losses), SOON)
    .toEqual([lossesOf(['c'], what, 'to'), lossesOf(['c'], what, 'to'), lossesOf(['a', 'b'], what, 'from')])
  // an agent that is away says nothing of the network
  await world.lab.agents.stop('a', 'SIGKILL')
  await expect.poll(async () => losses(await network.said('c')), SOON).toEqual(lossesOf(['b'], what, 'from'))
})
