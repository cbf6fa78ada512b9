// SPDX-License-Identifier: Apache-2.0
/** Whether folders of the node can be written, seen below a mount of the node's root.
 * Layer: agent. */
import { mkdtempSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { placeOnNode } from '#lib/base/os/node-path.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'

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
