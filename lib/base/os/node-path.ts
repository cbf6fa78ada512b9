// SPDX-License-Identifier: Apache-2.0
/** Where a path of the node leads, for a container that sees it below a mount of the node's root. Layer: lib/base. */
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../errors.ts'

export interface PlaceOnNode {
  /** of the part of the path that is there */
  readonly found: string
  /** all of it is there */
  readonly isWhole: boolean
  /** where the whole path would be */
  readonly path: string
}

const MOST_LINKS = 40

/** Links lead where they lead on the node. Throws where a part of the path is no folder. */
export function placeOnNode(root: string, path: string): PlaceOnNode {
  let at: readonly string[] = []
  let rest: readonly string[] = partsOf(path)
  for (let links = 0; ;) {
    const [name, ...more] = rest
    if (name === undefined) return placeAt(join(root, ...at), [])
    rest = more
    if (name === '..') {
      at = at.slice(0, -1)
      continue
    }
    const target = linkAt(join(root, ...at, name))
    if (target === 'missing') return placeAt(join(root, ...at), [name, ...rest])
    if (target === undefined) {
      at = [...at, name]
      continue
    }
    if (++links > MOST_LINKS) throw new Error(`${path} has more than ${MOST_LINKS} symbolic links`)
    if (target.to.startsWith('/')) at = []
    rest = [...partsOf(target.to), ...rest]
  }
}

function placeAt(found: string, missing: readonly string[]): PlaceOnNode {
  return { found, isWhole: missing.length === 0, path: join(found, ...missing) }
}

/** undefined: it is no symbolic link. */
function linkAt(path: string): { readonly to: string } | 'missing' | undefined {
  try {
    return { to: readlinkSync(path) }
  } catch (thrown) {
    if (errorCode(thrown) === 'EINVAL') return undefined
    if (errorCode(thrown) === 'ENOENT') return 'missing'
    throw thrown
  }
}

function partsOf(path: string): readonly string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}
