// SPDX-License-Identifier: Apache-2.0
/** What every store of blocks keeps to: files, and the memory that tests use. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatCidr, parseCidr, type Cidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { BlockStore } from '#agent/ipam/block-store.ts'
import { FileBlocks } from '#agent/ipam/file-blocks.ts'
import { MemoryBlocks } from '../../support/memory-blocks.ts'

let folder: string
let announced: readonly Cidr[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-blocks-'))
  announced = []
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function files(node = 'n1'): FileBlocks {
  return new FileBlocks({ folder: join(folder, 'blocks'), node, announce: (ranges) => (announced = ranges) })
}

const BLOCK: IPBlock = {
  ...emptyBlock(parseCidr('10.0.1.64/26'), 'n1'),
  held: new Map([[3, { namespace: 'default', pod: 'web', containerId: 'c1' }]]),
  freed: new Map([[1, 1000]]),
}
const SIX = emptyBlock(parseCidr('::1:0/122'), 'n1')

describe.each<[string, () => (node: string) => BlockStore]>([
  ['files', () => files],
  [
    'memory',
    () => {
      const world = new MemoryBlocks()
      return (node) => world.store(node)
    },
  ],
])('%s', (_, make) => {
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
})

describe('files', () => {
  test('that cannot be read are an error: their addresses may be in use', async () => {
    await files().create(BLOCK)
    writeFileSync(join(folder, 'blocks', '10-0-1-64-26.json'), '{"spec": {"cidr": "10.0.1.64/26"}}')
    await expect(files().own()).rejects.toThrow('spec.node: is missing')
  })

  test('say which ranges lead here', async () => {
    await files().announce([BLOCK.cidr])
    expect(announced.map(formatCidr)).toEqual(['10.0.1.64/26'])
  })
})
