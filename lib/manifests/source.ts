// SPDX-License-Identifier: Apache-2.0
/** A directory of manifests as a source of objects, kept up to date. Layer: lib/manifests.
 *
 * Rules: a deleted file deletes its objects, once the directory has been quiet for a moment; a file that cannot be read or understood keeps
 * its last good objects; when the directory itself goes, everything stays as it was until it is back. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { compareText } from '../base/order.ts'
import type { Rejected } from '../base/result.ts'
import { same } from '../base/same.ts'
import { createPool } from '../kube/parse-core.ts'
import type { Problem, Sink, Source, SourceEvent, SourceStatus } from '../store/source.ts'
import { AgendaBook } from './agenda.ts'
import type { Agenda } from './agenda.ts'
import { parseFile, placeOf } from './file.ts'
import { Holdings } from './holdings.ts'
import { isManifestName } from './read.ts'
import { directoryId, listTree, readChanged } from './tree.ts'
import type { Stamp } from './tree.ts'
import { TreeWatcher } from './watcher.ts'

export interface DirectoryOptions {
  readonly directory: string
  readonly clock: Clock
  /** how long no file may have left before deletions are believed, in ms */
  readonly settleMs?: number
}

const SETTLE_MS = 100
/** Deletions are not put off for longer by further ones, unless most of the directory is going. */
const LONGEST_SETTLE_MS = 1_000
const LOOK_AGAIN_MS = 500
/** Files read before others get a turn. */
const CHUNK = 256

export class DirectorySource implements Source {
  readonly name = 'directory'
  readonly #root: string
  readonly #clock: Clock
  readonly #settleMs: number
  readonly #holdings = new Holdings()
  readonly #stamps = new Map<string, Stamp>()
  readonly #problems = new Map<string, readonly Problem[]>()
  readonly #intern = createPool()
  #status: SourceStatus | undefined
  #unavailable: SourceStatus['unavailable']

  constructor(options: DirectoryOptions) {
    this.#root = options.directory
    this.#clock = options.clock
    this.#settleMs = options.settleMs ?? SETTLE_MS
  }

  async run(sink: Sink, signal: AbortSignal): Promise<void> {
    const wake = new Wake()
    const agenda = new AgendaBook(this.#clock, () => {
      wake.call()
    })
    using watcher = new TreeWatcher(this.#root, (touched) => {
      if (isManifestName(touched.path ?? '') || touched.path === undefined || this.#isDirectory(touched.path, watcher)) {
        agenda.note(isManifestName(touched.path ?? '') ? touched : { path: undefined, inPlace: false })
      }
    })
    const onAbort = (): void => {
      wake.call()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    agenda.note({ path: undefined, inPlace: false })
    const settling = new Settling(this.#clock, this.#settleMs, () => {
      wake.call()
    })
    let synced = false
    while (!signal.aborted) {
      await wake.wait()
      const seen = await this.#look({ agenda: agenda.take(), watcher, sink, signal })
      if (seen && !synced && !signal.aborted) {
        synced = true
        sink.synced()
      }
      if (!seen) this.#lookAgain(agenda)
      this.#settle(settling, sink, seen)
      this.#say(sink)
    }
    agenda.stop()
    settling.stop()
    signal.removeEventListener('abort', onAbort)
  }
}
