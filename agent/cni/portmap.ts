// SPDX-License-Identifier: Apache-2.0
/** The plugin that serves hostPorts, where the node has it: which versions of CNI it speaks. Layer: agent/cni. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import type { Log } from '#lib/obs/log.ts'
import { runDelegate } from './delegate.ts'

export const PORTMAP = 'portmap'
/** What Kubernetes' own packages have had for long, of one that cannot be asked. */
const UNASKED = ['1.0.0']
const ANSWER_MS = 5000

export class Portmap {
  readonly #folder: string
  readonly #log: Log
  /** of this file */
  #known: { readonly file: string; readonly versions: readonly string[] } | undefined

  constructor(options: { readonly binDir: string; readonly log: Log }) {
    this.#folder = options.binDir
    this.#log = options.log
  }

  /** Asks it once, and again when it is another one. Undefined: there is none. */
  async versions(): Promise<readonly string[] | undefined> {
    const file = identityOf(join(this.#folder, PORTMAP))
    if (file === undefined) return undefined
    if (this.#known?.file !== file) this.#known = { file, versions: await this.#ask() }
    return this.#known.versions
  }

  async #ask(): Promise<readonly string[]> {
    try {
      const output = await runDelegate({
        command: 'VERSION',
        type: PORTMAP,
        config: JSON.stringify({ cniVersion: UNASKED[0] }),
        folders: [this.#folder],
        environment: {},
        timeoutMs: ANSWER_MS,
      })
      return versionsIn(output)
    } catch (error) {
      this.#log.warn({ folder: this.#folder, error, taken: UNASKED }, 'cni.portmap-unasked')
      return UNASKED
    }
  }
}

function versionsIn(output: string): readonly string[] {
  const answer: unknown = JSON.parse(output)
  const versions: unknown = isObject(answer) ? answer['supportedVersions'] : undefined
  if (!Array.isArray(versions)) throw new TypeError('supportedVersions: is no list')
  return versions.filter((version) => typeof version === 'string')
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
