// SPDX-License-Identifier: Apache-2.0
/** What every store of blocks keeps to. Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { BlockStore } from '#agent/ipam/block-store.ts'

export const BLOCK: IPBlock = {
  ...emptyBlock(parseCidr('10.0.1.64/26'), 'n1'),
  held: new Map([[3, { namespace: 'default', pod: 'web', containerId: 'c1' }]]),
  freed: new Map([[1, 1000]]),
}
const SIX = emptyBlock(parseCidr('::1:0/122'), 'n1')

/** `make`: an empty one, and what a node sees of it */
export function keepsBlocks(make: () => (node: string) => BlockStore): void {
  test('what was made is there, whole, and no second time', async () => {
    const of = make()
    expect((await of('n1').create(BLOCK))?.block).toEqual(BLOCK)
    await of('n1').create(SIX)
    expect(await of('n1').create(emptyBlock(BLOCK.cidr, 'n2'))).toBeUndefined()
    expect((await of('n1').own()).map(({ block }) => block).sort((a, b) => a.cidr.bits - b.cidr.bits)).toEqual([BLOCK, SIX])
    expect(await of('n2').own()).toEqual([])
    expect(await of('n2').all()).toHaveLength(2)
  })

  test('an old version is neither replaced nor removed', async () => {
    const store = make()('n1')
    const first = await store.create(BLOCK)
    const second = first && (await store.replace(first, { ...BLOCK, held: new Map() }))
    expect(second?.block.held.size).toBe(0)
    expect(first && (await store.replace(first, BLOCK))).toBeUndefined()
    expect(first && (await store.remove(first))).toBe(false)
    expect(second && (await store.remove(second))).toBe(true)
    expect(second && (await store.remove(second))).toBe(false)
    expect(await store.all()).toEqual([])
  })
}
