// SPDX-License-Identifier: Apache-2.0
/** Puts on the node what runtimes find: the shim and a network configuration that calls it. Layer: agent/cni. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { ConfigError, errorCode } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import type { Log } from '#lib/obs/log.ts'
import { chainedConflist, conflistText, installConflist, refuseOthersBefore, removeOldLists, type Conflist } from './conflist.ts'
import { NodeFolder } from './node-folder.ts'
import { noteFolders, type Folders } from './record.ts'
import { Portmap } from '../portmap.ts'
import { installShim, SHIM } from './shim.ts'

/** The folders' paths on the node. */
export interface FoldersOnNode extends Folders {
  /** the node's root, as this process sees it */
  readonly root: string
}

export interface InstallerOptions extends Folders {
  /** undefined: this process sees the node's paths as they are */
  readonly onNode?: FoldersOnNode | undefined
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
  readonly #confDir: NodeFolder
  readonly #binDir: NodeFolder
  /** this version's, since this start: the file that was put there */
  #shim: string | undefined

  constructor(options: InstallerOptions) {
    const { confDir, binDir, onNode } = options
    this.#options = options
    this.#confDir = new NodeFolder(confDir, onNode && { root: onNode.root, path: onNode.confDir })
    this.#binDir = new NodeFolder(binDir, onNode && { root: onNode.root, path: onNode.binDir })
    this.#portmap = new Portmap({ ...options, binDir: () => this.#binDir.path, clock: systemClock })
  }

  /** Where plugins are on the node now. */
  get binDir(): string {
    return this.#binDir.path
  }

  /** What is missing, or is not as it should be, also where the folders are others now. Throws ConfigError when
   * runtimes would not find us all the same. */
  async renew(): Promise<void> {
    const { readyFile, chained, log } = this.#options
    this.#renewShim()
    if (!existsSync(readyFile)) writeFileSync(readyFile, '')
    const confDir = this.#confDir.path
    const wanted = await this.#conflist(confDir)
    if (installConflist(confDir, wanted)) log.info({ folder: confDir, list: wanted.kind }, 'cni.installed')
    if (chained) return
    const removed = removeOldLists(confDir)
    if (removed.length > 0) log.info({ folder: confDir, lists: removed }, 'cni.old-lists-removed')
    refuseOthersBefore(confDir)
  }

  #renewShim(): void {
    const { confDir, binDir, foldersFile, log } = this.#options
    const folder = this.#binDir.path
    if (this.#shim !== undefined && identityOf(join(folder, SHIM)) === this.#shim) return
    noteFolders(foldersFile, { confDir, binDir })
    installShim(join(packageRoot(), 'build', SHIM), folder)
    if (this.#shim !== undefined) log.info({ folder }, 'cni.shim-installed-again')
    this.#shim = identityOf(join(folder, SHIM))
  }

  async #conflist(confDir: string): Promise<Conflist> {
    const { socket, chained, hostPorts, mtu } = this.#options
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

/** Of a file; undefined: there is none. What was written over it has another one. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino, mode, size, mtimeMs } = statSync(path)
    return [dev, ino, mode, size, mtimeMs].join(' ')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
