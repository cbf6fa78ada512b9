// SPDX-License-Identifier: Apache-2.0
/** Folders of the node as a container sees them below a mount of the node's root, and whether they can be written.
 * Layer: agent. */
import { mkdtempSync, readlinkSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'

export interface PlaceOnNode {
  /** of the part of the path that is there */
  readonly found: string
  /** all of it is there */
  readonly isWhole: boolean
}

const MOST_LINKS = 40

/** Links lead where they lead on the node. Throws where a part of the path is no folder. */
export function placeOnNode(root: string, path: string): PlaceOnNode {
  let at: readonly string[] = []
  let rest: readonly string[] = partsOf(path)
  for (let links = 0; ;) {
    const [name, ...more] = rest
    if (name === undefined) return { found: join(root, ...at), isWhole: true }
    rest = more
    if (name === '..') {
      at = at.slice(0, -1)
      continue
    }
    const target = linkAt(join(root, ...at, name))
    if (target === 'missing') return { found: join(root, ...at), isWhole: false }
    if (target === undefined) {
      at = [...at, name]
      continue
    }
    if (++links > MOST_LINKS) throw new Error(`${path} has more than ${MOST_LINKS} symbolic links`)
    if (target.to.startsWith('/')) at = []
    rest = [...partsOf(target.to), ...rest]
  }
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

/** Tries each of them, or what is there of it: an empty folder is made and taken away again. */
export function hostPathFindings(root: string, paths: readonly string[]): Finding[] {
  return paths.flatMap((path) => {
    try {
      rmdirSync(mkdtempSync(join(placeOnNode(root, path).found, '.netplane-preflight-')))
      return []
    } catch (thrown) {
      return [finding('host-path', path, errorCode(thrown) ?? errorText(thrown))]
    }
  })
}
