// SPDX-License-Identifier: Apache-2.0
/** What every store of blocks keeps to: files, and the memory that tests use. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatCidr, type Cidr } from '#lib/base/ip.ts'
import type { BlockStore } from '#agent/ipam/block-store.ts'
import { FileBlocks } from '#agent/ipam/file-blocks.ts'
import { BLOCK, keepsBlocks } from '../../support/contracts/block-store-contract.ts'
import { MemoryBlocks } from '../../support/fakes/memory-blocks.ts'

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
  keepsBlocks(make)
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
