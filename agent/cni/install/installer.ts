// SPDX-License-Identifier: Apache-2.0
/** Puts on the node what runtimes find: the shim and a network configuration that calls it. Layer: agent/cni. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { ConfigError } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import type { Log } from '#lib/obs/log.ts'
import { chainedConflist, conflistText, installConflist, refuseOthersBefore, removeOldLists, type Conflist } from './conflist.ts'
import { noteFolders, type Folders } from './record.ts'
import { Portmap } from '../portmap.ts'
import { installShim, SHIM } from './shim.ts'

export interface InstallerOptions extends Folders {
  readonly socket: string
  readonly chained: boolean
  readonly hostPorts: boolean
  readonly mtu: number | undefined
  /** says to later agents that this node has been ready */
  readonly readyFile: string
  /** remembers the folders for the cleanup that takes Netplane off the node */
  readonly foldersFile: string
  readonly log: Log
}

export class Installer {
  readonly #options: InstallerOptions
  readonly #portmap: Portmap
  /** this version's, since this start */
  #hasShim = false

  constructor(options: InstallerOptions) {
    this.#options = options
    this.#portmap = new Portmap({ ...options, clock: systemClock })
  }

  /** What is missing, or is not as it should be. Throws ConfigError when runtimes would not find us all the same. */
  async renew(): Promise<void> {
    const { confDir, binDir, readyFile, foldersFile, chained, log } = this.#options
    if (!this.#hasShim || !existsSync(join(binDir, SHIM))) {
      noteFolders(foldersFile, { confDir, binDir })
      installShim(join(packageRoot(), 'build', SHIM), binDir)
    }
    this.#hasShim = true
    if (!existsSync(readyFile)) writeFileSync(readyFile, '')
    const wanted = await this.#conflist()
    if (installConflist(confDir, wanted)) log.info({ folder: confDir, list: wanted.kind }, 'cni.installed')
    if (chained) return
    const removed = removeOldLists(confDir)
    if (removed.length > 0) log.info({ folder: confDir, lists: removed }, 'cni.old-lists-removed')
    refuseOthersBefore(confDir)
  }

  async #conflist(): Promise<Conflist> {
    const { confDir, socket, chained, hostPorts, mtu } = this.#options
    if (!chained) {
      const portmap = hostPorts ? await this.#portmap.versions() : 'none'
      return { kind: 'own', text: conflistText({ socket, mtu, portmap }) }
    }
    const list = chainedConflist(confDir, socket)
    if (list !== undefined) return list
    installConflist(confDir, { kind: 'chained', text: undefined })
    throw new ConfigError('--cni-chained', `${confDir} has no network configuration of another plugin`)
  }
}
