// SPDX-License-Identifier: Apache-2.0
/** What a runtime reads to find us, and the shim that it then runs. Layer: agent/cni. */
import { accessSync, chmodSync, constants, copyFileSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { writeDurably } from '#lib/base/durable-file.ts'
import { errorCode } from '#lib/base/errors.ts'
import { CNI_VERSIONS } from './request.ts'

export const SHIM = 'netplane-cni'
export const CONFLIST = '10-netplane.conflist'

/** Older runtimes read cniVersion alone, and know 1.0.0. */
export function conflistText({ socket, portmap }: { readonly socket: string; readonly portmap: boolean }): string {
  const plugins = [{ type: SHIM, socket }, ...(portmap ? [{ type: 'portmap', capabilities: { portMappings: true }, snat: true }] : [])]
  return `${JSON.stringify({ cniVersion: '1.0.0', cniVersions: CNI_VERSIONS, name: 'netplane', plugins }, null, 2)}\n`
}

/** Whether the folder has the plugin that serves hostPorts. */
export function hasPortmap(binDir: string): boolean {
  try {
    accessSync(join(binDir, 'portmap'), constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Puts the shim where the runtime looks for it, without a moment in which half of it is there. */
export function installShim(from: string, binDir: string): void {
  mkdirSync(binDir, { recursive: true })
  const part = join(binDir, `.${SHIM}.part`)
  copyFileSync(from, part)
  chmodSync(part, 0o755)
  renameSync(part, join(binDir, SHIM))
}

/** True when it was not so before. */
export function installConflist(confDir: string, text: string): boolean {
  const path = join(confDir, CONFLIST)
  if (textOf(path) === text) return false
  writeDurably(path, text, 0o644)
  return true
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
