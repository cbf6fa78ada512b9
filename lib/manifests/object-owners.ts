// SPDX-License-Identifier: Apache-2.0
/** Which file's version of an object is in force, and what may be taken as deleted. Layer: lib/manifests (pure). */
import { compareText } from '../base/order.ts'
import type { Rejected } from '../base/result.ts'
import { refText } from '../model/ref.ts'
import type { KubeObject } from '../model/snapshot.ts'
import type { SourceEvent } from '../store/source.ts'
import type { FileContent } from './file.ts'

/** What a file gives at present. */
interface Holding {
  readonly file: string
  objects: readonly KubeObject[]
  /** what remains when everything that has left the file is let go; undefined when nothing has */
  settled: readonly KubeObject[] | undefined
  /** those of the objects that the file itself does not give at present */
  kept: readonly KubeObject[]
}

/** An object that `file` has as well as the one whose version is in force. */
export interface Conflict {
  readonly file: string
  readonly rejected: Rejected
}

const NOTHING: FileContent = { objects: [], unusable: new Map(), unsure: false, problems: [] }

/** Where several files define an object, the one whose name sorts first has it. Objects that leave a file stay until
 * `settle`: a file that is being written again may be empty or missing for a moment. */
export class ObjectOwners {
  readonly #files = new Map<string, Holding>()
  /** the file that holds an object */
  readonly #holders = new Map<string, Holding>()
  /** objects that more than one file has: all of those files */
  readonly #rivals = new Map<string, ReadonlySet<Holding>>()
  readonly #leaving = new Set<Holding>()
  #conflictRevision = 0
  #keptRevision = 0

  /** Takes in what a file holds now; undefined: the file is gone. Returns what changes for the world. */
  put(file: string, content: FileContent = NOTHING): readonly SourceEvent[] {
    const holding = this.#files.get(file) ?? { file, objects: [], settled: undefined, kept: [] }
    this.#files.set(file, holding)
    const usable = [...content.objects, ...this.#standIns(holding, content)]
    const now = new Map(usable.map((object) => [refText(object), object]))
    const missing = holding.objects.filter((object) => !now.has(refText(object)))
    const kept = missing.filter((object) => content.unsure || content.unusable.has(refText(object)))
    const settled = [...usable, ...kept]
    this.#keep(holding, kept)
    const leaves = kept.length < missing.length
    const events = this.#replace(holding, leaves ? [...usable, ...missing] : settled)
    holding.settled = leaves ? settled : undefined
    if (leaves) this.#leaving.add(holding)
    else this.#leaving.delete(holding)
    if (holding.objects.length === 0 && !leaves) this.#files.delete(file)
    return events
  }

  /** Files that objects are leaving. */
  get leaving(): number {
    return this.#leaving.size
  }

  /** Files that hold objects. */
  get files(): number {
    return this.#files.size
  }

  /** The files below this path, or at it, cannot be looked at: everything they gave stays. */
  keepAll(path: string): void {
    for (const [file, holding] of this.#files) if (file === path || file.startsWith(`${path}/`)) this.#keep(holding, holding.objects)
  }

  /** Objects that stay though their file does not give them at present. */
  *kept(): Generator<{ readonly file: string; readonly object: KubeObject }> {
    for (const { file, kept } of this.#files.values()) for (const object of kept) yield { file, object }
  }

  /** Another number whenever these may be others. */
  get keptRevision(): number {
    return this.#keptRevision
  }

  fileNames(): Iterable<string> {
    return this.#files.keys()
  }

  /** Lets go of everything that has left its file. */
  settle(): readonly SourceEvent[] {
    const events: SourceEvent[] = []
    for (const holding of this.#leaving) {
      events.push(...this.#replace(holding, holding.settled ?? []))
      holding.settled = undefined
      if (holding.objects.length === 0) this.#files.delete(holding.file)
    }
    this.#leaving.clear()
    return events
  }

  /** Takes nothing as deleted after all. */
  keepLeaving(): void {
    for (const holding of this.#leaving) holding.settled = undefined
    this.#leaving.clear()
  }

  /** Another number whenever the conflicts may be others. */
  get conflictRevision(): number {
    return this.#conflictRevision
  }

  /** The file that holds the object. */
  holder(ref: string): string | undefined {
    return this.#holders.get(ref)?.file
  }

  /** Objects that are defined in more than one file, one problem for each file that does not have it. */
  conflicts(): readonly Conflict[] {
    const conflicts: Conflict[] = []
    for (const [ref, rivals] of this.#rivals) {
      const winner = this.holder(ref)
      for (const { file } of rivals) {
        if (file !== winner) conflicts.push({ file, rejected: { ref, path: '', reason: `is already defined in ${winner ?? ''}` } })
      }
    }
    return conflicts.sort((a, b) => compareText(a.file, b.file) || compareText(a.rejected.ref, b.rejected.ref))
  }

  /** For objects that cannot be used and of which no file has a good version. */
  #standIns(holding: Holding, content: FileContent): readonly KubeObject[] {
    const good = new Set(holding.objects.filter((object) => !('closed' in object)).map(refText))
    return [...content.unusable].flatMap(([ref, instead]) => {
      const holder = this.#holders.get(ref)
      const free = holder === undefined || (holder === holding && !good.has(ref))
      return instead !== undefined && free ? [instead] : []
    })
  }

  #keep(holding: Holding, kept: readonly KubeObject[]): void {
    if (holding.kept.length === kept.length && kept.every((object, at) => holding.kept[at] === object)) return
    holding.kept = kept
    this.#keptRevision++
  }

  #replace(holding: Holding, objects: readonly KubeObject[]): readonly SourceEvent[] {
    const before = holding.objects
    holding.objects = objects
    const refs = new Set(objects.map(refText))
    const events: SourceEvent[] = []
    for (const object of before) {
      const ref = refText(object)
      if (!refs.has(ref)) events.push(...this.#leave(holding, ref, object))
    }
    for (const object of objects) {
      const winner = this.#enter(holding, refText(object))
      if (winner === holding) events.push({ kind: 'upsert', object })
    }
    return events
  }

  /** Returns the file that holds it now. */
  #enter(holding: Holding, ref: string): Holding {
    const holder = this.#holders.get(ref)
    if (holder === undefined || holder === holding) {
      this.#holders.set(ref, holding)
      return holding
    }
    this.#rivals.set(ref, new Set([...(this.#rivals.get(ref) ?? [holder]), holding]))
    this.#conflictRevision++
    const winner = compareText(holding.file, holder.file) < 0 ? holding : holder
    this.#holders.set(ref, winner)
    return winner
  }

  #leave(holding: Holding, ref: string, object: KubeObject): readonly SourceEvent[] {
    const others = [...(this.#rivals.get(ref) ?? [])].filter((rival) => rival !== holding)
    if (others.length > 0) this.#conflictRevision++
    if (others.length > 1) this.#rivals.set(ref, new Set(others))
    else this.#rivals.delete(ref)
    if (this.#holders.get(ref) !== holding) return []
    const [heir] = others.sort((a, b) => compareText(a.file, b.file))
    const inherited = heir?.objects.find((candidate) => refText(candidate) === ref)
    if (heir === undefined || inherited === undefined) {
      this.#holders.delete(ref)
      return [{ kind: 'delete', ref: { kind: object.kind, namespace: object.namespace, name: object.name } }]
    }
    this.#holders.set(ref, heir)
    return [{ kind: 'upsert', object: inherited }]
  }
}
