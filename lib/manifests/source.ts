// SPDX-License-Identifier: Apache-2.0
/** A directory of manifests as a source of objects, kept up to date. Layer: lib/manifests.
 *
 * Rules: a deleted file deletes its objects, once nothing more has left for a moment; a file that cannot be read or
 * understood keeps its last good objects, over a restart those that allow or deny traffic; when the directory
 * itself goes, everything stays as it was until it is back. */
import type { Clock } from '../base/clock.ts'
import { errorCode, errorText } from '../base/errors.ts'
import type { Rejected } from '../base/result.ts'
import { deepEqual } from '../base/deep-equal.ts'
import type { Sink, Source, SourceEvent, SourceStatus } from '../store/source.ts'
import { ChangeDebouncer } from './change-debouncer.ts'
import type { Agenda, Touched } from './change-debouncer.ts'
import { DirectoryState } from './directory-state.ts'
import type { LastGoodFile } from '../store/last-good.ts'
import { isManifestName } from './read.ts'
import type { FileRead, Stamp } from './read-file.ts'
import { readFiles } from './read-files.ts'
import { DeletionDelay } from './deletion-delay.ts'
import { directoryId, listTree } from './tree.ts'
import type { Tree } from './tree.ts'
import { TreeWatcher } from './watcher.ts'

export interface DirectoryOptions {
  readonly directory: string
  readonly clock: Clock
  /** for how long nothing may have left before deletions are believed, in ms; 100 when not given */
  readonly settleMs?: number
  /** file of last good versions of objects that allow or deny traffic, over a restart; none when not given */
  readonly lastGood?: LastGoodFile
}

const SETTLE_MS = 100
/** How often a directory is looked at that is not there, or cannot be watched. */
const LOOK_AGAIN_MS = 500
const EVERYTHING: Touched = { path: undefined, inPlace: false }

/** What the last status was made from. */
interface Said {
  readonly revision: number
  readonly kept: number
  readonly unavailable: SourceStatus['unavailable']
  readonly unwatched: string | undefined
}

export class DirectorySource implements Source {
  readonly name = 'directory'
  readonly #root: string
  readonly #clock: Clock
  readonly #contents: DirectoryState
  readonly #agenda: ChangeDebouncer
  readonly #settling: DeletionDelay
  readonly #watcher: TreeWatcher
  #rootId: string | undefined
  #wasRead = false
  #unavailable: SourceStatus['unavailable']
  #said: Said | undefined
  #wake: () => void = () => undefined

  constructor(options: DirectoryOptions) {
    const wake = (): void => {
      this.#wake()
    }
    this.#root = options.directory
    this.#clock = options.clock
    this.#contents = new DirectoryState(options.directory, options.lastGood)
    this.#agenda = new ChangeDebouncer(options.clock, wake)
    this.#settling = new DeletionDelay({ clock: options.clock, quietMs: options.settleMs ?? SETTLE_MS, onDue: wake })
    this.#watcher = new TreeWatcher(options.directory, (touched) => {
      this.#note(touched)
    })
  }

  /** Never rejects: what is wrong is in the status, and is tried again. */
  async run(sink: Sink, signal: AbortSignal): Promise<void> {
    const onAbort = (): void => {
      this.#wake()
    }
    signal.addEventListener('abort', onAbort)
    let synced = false
    sink.apply(this.#contents.recall())
    this.#agenda.note(EVERYTHING)
    while (await this.#woken(signal)) {
      const looked = await this.#turn(sink, signal)
      if (looked && !synced) {
        synced = true
        sink.synced()
      }
    }
    signal.removeEventListener('abort', onAbort)
    this.#agenda.stop()
    this.#settling.clear()
    this.#watcher[Symbol.dispose]()
  }

  /** Looks at everything: changes may have gone unheard. */
  refresh(): void {
    this.#agenda.note(EVERYTHING)
  }

  /** "services.yaml:12" for each field of an object that came from here, of many the file alone; undefined when it did
   * not. Reads files again. */
  placesOf(fields: readonly Rejected[]): readonly (string | undefined)[] {
    return this.#contents.placesOf(fields)
  }

  /** False when it is over. */
  async #woken(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted && !this.#agenda.isDue && !this.#settling.isDue) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return !signal.aborted
  }

  /** True when the whole content is known. */
  async #turn(sink: Sink, signal: AbortSignal): Promise<boolean> {
    const agenda = this.#agenda.take()
    const lost = await this.#look(agenda, { sink, signal })
    if (lost === undefined) this.#unavailable = undefined
    else {
      this.#unavailable = { reason: lost, since: this.#unavailable?.since ?? this.#clock.wall() }
      this.#contents.holdings.keepLeaving()
      this.#settling.clear()
    }
    if (lost !== undefined || this.#watcher.failed !== undefined) this.#agenda.noteLater(EVERYTHING, LOOK_AGAIN_MS)
    if (this.#settling.isDue) {
      this.#settling.clear()
      sink.apply(this.#contents.holdings.settle())
    }
    this.#contents.remember()
    this.#say(sink)
    return lost === undefined
  }

  /** Why the directory cannot be looked at; undefined: it was. */
  async #look(agenda: Agenda, to: { readonly sink: Sink; readonly signal: AbortSignal }): Promise<string | undefined> {
    const id = this.#attempt(() => directoryId(this.#root))
    if (typeof id === 'object') return id.unavailable
    if (id === undefined) {
      this.#watcher.watchOnly(new Map())
      this.#rootId = undefined
      return this.#wasRead ? 'the directory is gone: its last good state stays in force' : `${this.#root} does not exist`
    }
    if (!agenda.everything && id === this.#rootId) {
      await this.#read([...agenda.paths], { ...to, force: true })
      return undefined
    }
    const tree = this.#attempt(() => this.#tree())
    if ('unavailable' in tree) return tree.unavailable
    if (this.#wasRead && id !== this.#rootId && tree.files.length === 0 && this.#contents.holdings.files > 0)
      return 'another directory, an empty one, is in its place: the last good state stays in force'
    this.#rootId = id
    this.#wasRead = true
    for (const file of this.#contents.missing(tree)) this.#put(this.#contents.gone(file), to.sink)
    this.#contents.unreadable(tree.unreadable)
    await this.#read([...agenda.paths], { ...to, force: true })
    await this.#read(tree.files, { ...to, force: false })
    return undefined
  }

  /** Lists the files after every directory is watched, so that nothing happens unseen in between. */
  #tree(): Tree {
    const tree = listTree(this.#root)
    return this.#watcher.watchOnly(tree.directories) ? listTree(this.#root) : tree
  }

  /** What it gives, or why the directory cannot be read. */
  #attempt<T>(look: () => T): T | { readonly unavailable: string } {
    try {
      return look()
    } catch (thrown) {
      const why = `cannot be read (${errorCode(thrown) ?? errorText(thrown)})`
      return { unavailable: this.#wasRead ? `the directory ${why}: its last good state stays in force` : `${this.#root} ${why}` }
    }
  }

  async #read(
    files: readonly string[],
    how: { readonly sink: Sink; readonly signal: AbortSignal; readonly force: boolean },
  ): Promise<void> {
    const known = (file: string): Stamp | undefined => (how.force ? undefined : this.#contents.stamp(file))
    const wanted = { root: this.#root, files: files.map((file) => ({ file, known: known(file) })) }
    for await (const reads of readFiles(wanted)) {
      if (how.signal.aborted) return
      this.#put(
        [...reads].flatMap(([file, read]) => this.#take(file, read)),
        how.sink,
      )
    }
  }

  #take(file: string, read: FileRead): readonly SourceEvent[] {
    const events = this.#contents.take(file, read)
    if (events === undefined) this.#agenda.note(EVERYTHING)
    return events ?? []
  }

  #put(events: readonly SourceEvent[], sink: Sink): void {
    if (events.length > 0) sink.apply(events)
    const { leaving, files } = this.#contents.holdings
    this.#settling.note(leaving, files)
  }

  #say(sink: Sink): void {
    const { problemRevision: revision, holdings } = this.#contents
    const now: Said = { revision, kept: holdings.keptRevision, unavailable: this.#unavailable, unwatched: this.#watcher.failed }
    if (deepEqual(now, this.#said)) return
    this.#said = now
    const reason = `the directory cannot be watched (${now.unwatched ?? ''}): it is looked at every ${LOOK_AGAIN_MS} ms`
    const watching = now.unwatched === undefined ? [] : [{ place: undefined, rejected: { ref: '', path: '', reason } }]
    const problems = [...watching, ...this.#contents.problems()]
    const kept = this.#contents.kept()
    sink.status({ unavailable: this.#unavailable, problems, ...(kept.length === 0 ? {} : { kept }) })
  }

  /** Directories that come and go change the tree. Other names that are no manifests (an editor's, say) are ignored. */
  #note(touched: Touched): void {
    const { path } = touched
    if (path === undefined || this.#watcher.isWatched(path)) this.#agenda.note(EVERYTHING)
    // a directory of such a name is found when it is read
    else if (isManifestName(path)) this.#agenda.note(touched)
    // one that could not be looked at may have gone
    else if (this.#watcher.mayBeDirectory(path) || this.#contents.hasProblem(path)) this.#agenda.note(EVERYTHING)
  }
}
