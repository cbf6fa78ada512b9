// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { placeAmong, TURN_MS, turnMs } from '#agent/status/leader-order.ts'

const NODES = Array.from({ length: 100 }, (_, at) => `node-${at}`)

test('one node is the first, seven stand in one after the other, and the rest say nothing', () => {
  const turns = NODES.map((node) => turnMs(placeAmong(node, NODES), 'NetworkPolicy/default/web'))
  expect(turns.filter((turn) => turn !== undefined).sort((a, b) => a - b)).toEqual(Array.from({ length: 8 }, (_, turn) => turn * TURN_MS))
})

test('it does not matter in which order nodes are known', () => {
  for (const node of NODES) expect(placeAmong(node, NODES.toReversed())).toEqual(placeAmong(node, NODES))
})

test('other things are the turn of other nodes', () => {
  const firsts = Array.from({ length: 1000 }, (_, at) => NODES.find((node) => turnMs(placeAmong(node, NODES), `thing ${at}`) === 0))
  const most = Math.max(...[...Map.groupBy(firsts, (node) => node).values()].map((things) => things.length))
  expect(firsts).not.toContain(undefined)
  // ten each on average
  expect(most).toBeLessThan(30)
})

test('a node that is not among them has no turn, and the only one has every turn', () => {
  expect(turnMs(placeAmong('n9', ['n1', 'n2']), 'x')).toBeUndefined()
  expect(turnMs(placeAmong('n1', ['n1']), 'x')).toBe(0)
})
