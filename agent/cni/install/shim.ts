// SPDX-License-Identifier: Apache-2.0
/** The plugin that runtimes run. Layer: agent/cni. */
import { chmodSync, copyFileSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'

export const SHIM = 'netplane-cni'

/** Puts the shim where the runtime looks for it, without a moment in which half of it is there. */
export function installShim(from: string, binDir: string): void {
  mkdirSync(binDir, { recursive: true })
  const part = join(binDir, `.${SHIM}.part`)
  copyFileSync(from, part)
  chmodSync(part, 0o755)
  renameSync(part, join(binDir, SHIM))
}
