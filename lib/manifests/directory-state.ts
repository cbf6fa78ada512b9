// SPDX-License-Identifier: Apache-2.0
/** What the files of a directory hold, file by file as they are read. Layer: lib/manifests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compareText } from '../base/order.ts'
import type { Rejected } from '../base/result.ts'
import { deepEqual } from '../base/deep-equal.ts'
import { createInternPool } from '../kube/parse/intern.ts'
import { refText } from '../model/ref.ts'
import type { KubeObject } from '../model/snapshot.ts'
import type { Problem, SourceEvent } from '../store/source.ts'
import { MOST_PLACED, parseFile, placeFinder } from './file.ts'
import type { ParsedFile } from './file.ts'
import { ObjectOwners } from './object-owners.ts'
import type { LastGoodFile } from '../store/last-good.ts'
import type { FileRead, Stamp } from './read-file.ts'
import type { Tree } from './tree.ts'

export class DirectoryState {
  readonly #root: string
  readonly #holdings = new ObjectOwners()
  readonly #stamps = new Map<string, Stamp>()
  readonly #problems = new Map<string, readonly Problem[]>()
  readonly #pool = createInternPool()
  readonly #lastGood: LastGoodFile | undefined
  /** as objects were written, of the kinds that are kept */
  readonly #raws = new WeakMap<KubeObject, unknown>()
  #problemRevision = 0
  #keptRevision = 0

  /** `lastGood`: where last good versions outlive this process */
  constructor(root: string, lastGood?: LastGoodFile) {
    this.#root = root
    this.#lastGood = lastGood
  }

  /** What the process before this one kept, as if its files had been read. */
  recall(): readonly SourceEvent[] {
    const byFile = Map.groupBy(this.#lastGood?.read() ?? [], ({ file }) => file)
    return [...byFile].flatMap(([file, objects]) => {
      const list = { apiVersion: 'v1', kind: 'List', items: objects.map(({ object }) => object) }
      const content = parseFile(`${file}.json`, JSON.stringify(list), this.#pool)
      const events = this.#put(file, content)
      this.#holdings.keepAll(file)
      return events
    })
  }

  /** Notes for the process after this one what has to stay over its start. */
  remember(): void {
    const { keptRevision } = this.#holdings
    if (this.#lastGood === undefined || keptRevision === this.#keptRevision) return
    const failed = this.#lastGood.failed
    const kept = [...this.#holdings.kept()].map(({ file, object }) => ({ file, object: this.#raws.get(object) }))
    this.#lastGood.write(kept.filter(({ object }) => object !== undefined))
    if (this.#lastGood.failed === undefined) this.#keptRevision = keptRevision
    if (this.#lastGood.failed !== failed) this.#problemRevision++
  }

  /** Tells whether the file is still as it was read last. */
  stamp(file: string): Stamp | undefined {
    return this.#stamps.get(file)
  }

  /** Takes in what a file was read to be; undefined: it is a directory, or was one. */
  take(file: string, read: FileRead): readonly SourceEvent[] | undefined {
    switch (read.kind) {
      case 'unchanged':
        return []
      case 'directory':
        return undefined
      case 'gone':
        return this.#isLost(file) ? undefined : this.gone(file)
      case 'unreadable':
        this.#cannotRead(file, read.why)
        return []
      case 'read': {
        const content = parseFile(file, read.text, this.#pool)
        this.#stamps.set(file, read.stamp)
        this.#setProblems(file, content.problems)
        return this.#put(file, content)
      }
    }
  }

  gone(file: string): readonly SourceEvent[] {
    this.#stamps.delete(file)
    this.#setProblems(file, [])
    return this.#holdings.put(file)
  }

  /** Files known here that are no longer in the tree. What is below an unreadable directory may still be there. */
  missing({ files, unreadable }: Tree): readonly string[] {
    const there = new Set(files)
    const unseen = [...unreadable.keys()]
    const known = new Set([...this.#stamps.keys(), ...this.#problems.keys(), ...this.#holdings.fileNames()])
    return [...known].filter((file) => !there.has(file) && !unseen.some((path) => file === path || file.startsWith(`${path}/`)))
  }

  /** Files and directories that are there and cannot be looked at, and why. */
  unreadable(paths: ReadonlyMap<string, string>): void {
    for (const [path, why] of paths) this.#cannotRead(path, why)
  }

  get holdings(): ObjectOwners {
    return this.#holdings
  }

  /** Another number whenever the problems may be others. */
  get problemRevision(): number {
    return this.#problemRevision + this.#holdings.conflictRevision
  }

  hasProblem(path: string): boolean {
    return this.#problems.has(path)
  }

  /** Everything that is wrong, by file. */
  problems(): readonly Problem[] {
    const files = [...this.#problems].sort((a, b) => compareText(a[0], b[0]))
    // a file that is gone holds its objects for a moment more
    const conflicts = this.#holdings.conflicts().filter(({ file }) => this.#stamps.has(file))
    const places = this.#placesOf(conflicts)
    const placed = conflicts.map(({ rejected }, at) => ({ place: places[at], rejected }))
    const failed = this.#lastGood?.failed
    const unkept = failed === undefined ? [] : [{ place: undefined, rejected: { ref: '', path: '', reason: failed } }]
    return [...unkept, ...files.flatMap(([, problems]) => problems), ...placed]
  }

  /** Refs of objects in force whose own file does not give them at present. */
  kept(): readonly string[] {
    const kept = [...this.#holdings.kept()].map(({ file, object }) => ({ file, ref: refText(object) }))
    return kept.flatMap(({ file, ref }) => (this.#holdings.holder(ref) === file ? [ref] : [])).sort(compareText)
  }

  /** "services.yaml:12" for each field of an object in force, of many the file alone; undefined when no file has the
   * object. */
  placesOf(fields: readonly Rejected[]): readonly (string | undefined)[] {
    return this.#placesOf(fields.map((rejected) => ({ file: this.#holdings.holder(rejected.ref), rejected })))
  }

  /** Was a directory that could not be looked at: what it had is here still. */
  #isLost(path: string): boolean {
    return this.#problems.has(path) && [...this.#holdings.fileNames()].some((file) => file.startsWith(`${path}/`))
  }

  #placesOf(fields: readonly { readonly file: string | undefined; readonly rejected: Rejected }[]): readonly (string | undefined)[] {
    const finders = new Map<string, (rejected: Rejected) => string>()
    return fields.map(({ file, rejected }, at) => {
      if (file === undefined || at >= MOST_PLACED) return file
      const find = finders.get(file) ?? this.#finderIn(file)
      finders.set(file, find)
      return find(rejected)
    })
  }

  #finderIn(file: string): (rejected: Rejected) => string {
    try {
      return placeFinder(file, readFileSync(join(this.#root, file), 'utf8'))
    } catch {
      return () => file
    }
  }

  #put(file: string, content: ParsedFile): readonly SourceEvent[] {
    for (const [object, raw] of content.raws) this.#raws.set(object, raw)
    return this.#holdings.put(file, content)
  }

  #setProblems(file: string, problems: readonly Problem[]): void {
    if (deepEqual(this.#problems.get(file) ?? [], problems)) return
    this.#problemRevision++
    if (problems.length === 0) this.#problems.delete(file)
    else this.#problems.set(file, problems)
  }

  #cannotRead(path: string, why: string): void {
    this.#holdings.keepAll(path)
    this.#setProblems(path, [{ place: path, rejected: { ref: '', path: '', reason: `cannot be read: ${why}` } }])
  }
}
