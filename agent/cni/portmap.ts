// SPDX-License-Identifier: Apache-2.0
/** The plugin that serves hostPorts, where the node has it: which versions of CNI it speaks. Layer: agent/cni. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '#lib/base/clock.ts'
import { errorCode } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { delegateVersions } from './exec-plugin.ts'

export const PORTMAP = 'portmap'
/** Of one that does not answer: what Kubernetes' own packages have had for long. */
const UNASKED = ['1.0.0']
const ASK_AGAIN_MS = 60_000

export interface PortmapOptions {
  /** where it is now */
  readonly binDir: () => string
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

export class Portmap {
  readonly #options: PortmapOptions
  /** of this file, until then */
  #known: { readonly file: string; readonly versions: readonly string[]; readonly until: number } | undefined

  constructor(options: PortmapOptions) {
    this.#options = options
  }

  /** Asks it once, again when it is another one, and after a while when it did not answer. Undefined: there is none. */
  async versions(): Promise<readonly string[] | undefined> {
    const { binDir, clock } = this.#options
    const file = identityOf(join(binDir(), PORTMAP))
    if (file === undefined) return undefined
    if (this.#known?.file !== file || clock.now() >= this.#known.until) this.#known = { file, ...(await this.#ask()) }
    return this.#known.versions
  }

  async #ask(): Promise<{ readonly versions: readonly string[]; readonly until: number }> {
    const { binDir, clock, log } = this.#options
    try {
      return { versions: await delegateVersions({ type: PORTMAP, folders: [binDir()] }), until: Infinity }
    } catch (error) {
      log.warn({ folder: binDir(), error, taken: UNASKED }, 'portmap.version-failed')
      return { versions: UNASKED, until: clock.now() + ASK_AGAIN_MS }
    }
  }
}

/** Of an executable; another one has another. */
function identityOf(path: string): string | undefined {
  try {
    const { mode, dev, ino, size, mtimeMs } = statSync(path)
    return (mode & 0o111) === 0 ? undefined : [dev, ino, size, mtimeMs].join(' ')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
