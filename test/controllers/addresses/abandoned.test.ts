// SPDX-License-Identifier: Apache-2.0
/** Which blocks of nodes that are gone are taken back, and when. Layer: test. */
import { expect, test } from 'vitest'
import { formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { abandonedBlocks } from '#controllers/addresses/abandoned.ts'

const BLOCKS = [
  { block: emptyBlock(parseCidr('10.0.0.0/26'), 'gone') },
  { block: emptyBlock(parseCidr('10.0.1.0/26'), 'gone') },
  { block: emptyBlock(parseCidr('10.0.2.0/26'), 'there') },
]

function step(now: number, goneSince: ReadonlyMap<string, number>, more: { readonly nodes?: string[]; readonly inUse?: string[] } = {}) {
  const { nodes = ['there'], inUse = [] } = more
  const of = { blocks: BLOCKS, nodes: new Set(nodes), inUse: inUse.map(parseAddr), goneSince, now, graceMs: 100 }
  const { blocks, goneSince: since } = abandonedBlocks(of)
  return { blocks: blocks.map(({ block }) => formatCidr(block.cidr)), since }
}

test('of a node that has been gone for the grace, and of no other', () => {
  const first = step(1000, new Map())
  expect(first).toEqual({ blocks: [], since: new Map([['gone', 1000]]) })
  expect(step(1099, first.since).blocks).toEqual([])
  expect(step(1100, first.since).blocks).toEqual(['10.0.0.0/26', '10.0.1.0/26'])
})

test('a node that was back meanwhile has the whole grace again', () => {
  const back = step(1050, new Map([['gone', 1000]]), { nodes: ['there', 'gone'] })
  expect(back).toEqual({ blocks: [], since: new Map() })
  expect(step(1100, back.since).blocks).toEqual([])
})

test('a block of which a pod has an address stays', () => {
  expect(step(1100, new Map([['gone', 1000]]), { inUse: ['10.0.1.7', 'fd00::1'] }).blocks).toEqual(['10.0.0.0/26'])
})
