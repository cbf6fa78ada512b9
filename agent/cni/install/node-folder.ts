// SPDX-License-Identifier: Apache-2.0
/** A folder of the node that its runtime finds by a path, wherever that leads now. Layer: agent/cni. */
import { statSync } from 'node:fs'
import { placeOnNode } from '#lib/base/os/node-path.ts'
import { errorCode } from '#lib/base/errors.ts'

export interface NodePath {
  /** of the node, as this process sees it */
  readonly root: string
  /** on the node */
  readonly path: string
}

/** A container that has the folder by a mount keeps the folder of then, also when the node has another one at that path
 * or none. So the path is followed from the node's root, once both have been seen to be the same folder. */
export class NodeFolder {
  readonly #mounted: string
  readonly #onNode: NodePath | undefined
  #wasSame = false

  constructor(mounted: string, onNode: NodePath | undefined) {
    this.#mounted = mounted
    this.#onNode = onNode
  }

  /** Throws where a part of the path is no folder. */
  get path(): string {
    if (this.#onNode === undefined) return this.#mounted
    const { path } = placeOnNode(this.#onNode.root, this.#onNode.path)
    this.#wasSame ||= isSame(this.#mounted, path)
    return this.#wasSame ? path : this.#mounted
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [identityOf(one), identityOf(other)]
  return a !== undefined && a === b
}

function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
