// SPDX-License-Identifier: Apache-2.0
/** Blocks of this node in a folder: ranges that are its own by the cluster's word, and where there is no API server,
 * all. Layer: agent/ipam. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably, writeDurably } from '#lib/base/os/durable-file.ts'
import { errorCode } from '#lib/base/errors.ts'
import type { Cidr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { compareText } from '#lib/base/order.ts'
import { blockName, ipBlockObject, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { BlockStore, StoredBlock } from './block-store.ts'

export interface FileBlocksOptions {
  readonly folder: string
  readonly node: string
  /** which ranges of pools lead to this node */
  readonly announce: (ranges: readonly Cidr[]) => void
}

/** No other process writes here, but as in every store an old version is refused. */
export class FileBlocks implements BlockStore {
  readonly #options: FileBlocksOptions

  constructor(options: FileBlocksOptions) {
    this.#options = options
  }

  async own(): Promise<readonly StoredBlock[]> {
    return (await this.all()).filter(({ block }) => block.node === this.#options.node)
  }

  /** A file that cannot be read throws: to give its addresses away again would be worse. */
  all(): Promise<readonly StoredBlock[]> {
    return Promise.resolve(
      this.#names().flatMap((name) => {
        const text = this.#text(name)
        return text === undefined ? [] : [readBlock(text)]
      }),
    )
  }

  create(block: IPBlock): Promise<StoredBlock | undefined> {
    return Promise.resolve(this.#text(fileOf(block.cidr)) === undefined ? this.#write(block) : undefined)
  }

  replace(before: StoredBlock, after: IPBlock): Promise<StoredBlock | undefined> {
    return Promise.resolve(this.#isStill(before) ? this.#write(after) : undefined)
  }

  remove(stored: StoredBlock): Promise<boolean> {
    const is = this.#isStill(stored)
    if (is) removeDurably(this.#path(fileOf(stored.block.cidr)))
    return Promise.resolve(is)
  }

  /** There is no API server to ask: the caller's own view has said already that the node is gone. */
  hasNode(): Promise<boolean> {
    return Promise.resolve(false)
  }

  announce(ranges: readonly Cidr[]): Promise<void> {
    this.#options.announce(ranges)
    return Promise.resolve()
  }

  #isStill({ block, version }: StoredBlock): boolean {
    return this.#text(fileOf(block.cidr)) === version
  }

  /** The text is the version. */
  #write(block: IPBlock): StoredBlock {
    const version = `${JSON.stringify(ipBlockObject(block), null, 2)}\n`
    writeDurably(this.#path(fileOf(block.cidr)), version)
    return { block, version }
  }

  #names(): readonly string[] {
    return (orGone(() => readdirSync(this.#options.folder)) ?? []).filter((name) => name.endsWith('.json')).sort(compareText)
  }

  #text(name: string): string | undefined {
    return orGone(() => readFileSync(this.#path(name), 'utf8'))
  }

  #path(name: string): string {
    return join(this.#options.folder, name)
  }
}

function fileOf(cidr: Cidr): string {
  return `${blockName(cidr)}.json`
}

function readBlock(text: string): StoredBlock {
  const raw: unknown = JSON.parse(text)
  return { block: parseIPBlock(isObject(raw) ? raw : {}), version: text }
}

function orGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
