// SPDX-License-Identifier: Apache-2.0
/** Watches every directory of a tree (inotify) and says which paths something happened to. Layer: lib/manifests. */
import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, join } from 'node:path'
import { errorCode, errorText } from '../base/errors.ts'
import type { Touched } from './change-debouncer.ts'
import { directoryId } from './tree.ts'

export class TreeWatcher implements Disposable {
  readonly #root: string
  readonly #onTouched: (touched: Touched) => void
  readonly #watched = new Map<string, { readonly id: string; readonly watcher: FSWatcher }>()

  #failed: string | undefined

  constructor(root: string, onTouched: (touched: Touched) => void) {
    this.#root = root
    this.#onTouched = onTouched
  }

  /** Watches exactly these: relative path → identity. Returns true when a directory is newly watched: something may
   * have happened in it before. */
  watchOnly(directories: ReadonlyMap<string, string>): boolean {
    for (const [path, { id }] of this.#watched) if (directories.get(path) !== id) this.#forget(path)
    this.#failed = undefined
    let fresh = false
    for (const [path, id] of directories) {
      if (this.#watched.has(path)) continue
      try {
        this.#watched.set(path, { id, watcher: this.#watch(path) })
        fresh = true
      } catch (thrown) {
        this.#failed = errorCode(thrown) ?? errorText(thrown)
      }
    }
    return fresh
  }

  /** Why not every directory is watched: the machine's limit of inotify watches, mostly. */
  get failed(): string | undefined {
    return this.#failed
  }

  /** True also for what cannot be looked at. */
  mayBeDirectory(path: string): boolean {
    try {
      return directoryId(join(this.#root, path)) !== undefined
    } catch {
      return true
    }
  }

  isWatched(path: string): boolean {
    return this.#watched.has(path)
  }

  [Symbol.dispose](): void {
    for (const path of [...this.#watched.keys()]) this.#forget(path)
  }

  #watch(path: string): FSWatcher {
    const directory = join(this.#root, path)
    const ownName = basename(directory)
    const watcher = watch(directory, { persistent: true }, (type, name) => {
      // a directory's own end is reported under its own name
      if (name === null || name === ownName || name.startsWith('..')) this.#onTouched({ path: undefined, inPlace: false })
      // what is written beside and moved into its place is three of the four events of a change
      else if (!name.startsWith('.')) this.#onTouched({ path: path === '' ? name : `${path}/${name}`, inPlace: type === 'change' })
    })
    watcher.on('error', () => {
      this.#forget(path)
      this.#onTouched({ path: undefined, inPlace: false })
    })
    return watcher
  }

  #forget(path: string): void {
    this.#watched.get(path)?.watcher.close()
    this.#watched.delete(path)
  }
}
