// SPDX-License-Identifier: Apache-2.0
/** What is known of the objects of an API server: versions, what is wrong with them, and last good ones.
 * Layer: lib/api.
 *
 * An object that is there but cannot be used leaves its last good version in force; where there is none, what its
 * parser says stands in. */
import { atOnce, type Sliced } from '../../base/async/slices.ts'
import { isObject } from '../../base/object.ts'
import { compareText } from '../../base/order.ts'
import type { Parsed, Rejected } from '../../base/result.ts'
import { deepEqual } from '../../base/deep-equal.ts'
import { identify, parseInSlices } from '../../kube/parse/parse-object.ts'
import { createInternPool } from '../../kube/parse/intern.ts'
import { isPolicyMatter, type Kind } from '../../model/kinds.ts'
import { nameKey, refText, type Ref } from '../../model/ref.ts'
import type { LastGoodFile } from '../../store/last-good.ts'
import type { Problem, SourceEvent } from '../../store/source.ts'
import { objectPath } from '../resource.ts'
import { WATCHED, type WatchedKind } from './watch-list.ts'

type Raw = Readonly<Record<string, unknown>>

interface Known {
  /** of the object that is there, usable or not */
  version: string
  /** of which list it was last in */
  listed: number
  /** what the store has of it */
  inForce: 'good' | 'stand-in' | 'nothing'
  /** the good version as the server gave it, of kinds that are kept */
  raw: Raw | undefined
}

export class ObjectCache {
  readonly #lastGood: LastGoodFile | undefined
  readonly #kinds = new Map<Kind, Map<string, Known>>(WATCHED.map(({ entry }) => [entry.kind, new Map()]))
  readonly #problems = new Map<string, readonly Problem[]>()
  /** refs whose last good version is in force in the place of another */
  readonly #kept = new Map<string, { readonly file: string; readonly object: Raw }>()
  readonly #pool = createInternPool()
  #revision = 0
  #keptRevision = 0
  #remembered = 0

  /** `lastGood`: where last good versions outlive this process */
  constructor(lastGood?: LastGoodFile) {
    this.#lastGood = lastGood
  }

  /** What the process before this one kept, until the server says something else. */
  recall(): readonly SourceEvent[] {
    const entries = this.#lastGood?.read() ?? []
    return entries.flatMap(({ object }) => {
      const identified = identify(object)
      const watched = identified.kind === 'ours' ? WATCHED.find(({ entry }) => entry === identified.entry) : undefined
      if (watched === undefined || !isObject(object)) return []
      const events = atOnce(this.put(watched, object))
      const ref = refOf(watched, object)
      // they are kept until the server has a better one
      this.#keep(refText(ref), { file: pathOf(watched, ref), object })
      return events
    })
  }

  /** Takes in an object as it is now; nothing of it is taken in where this ends unfinished. `list`: the number of the
   * list it is in. */
  *put(watched: WatchedKind, raw: Raw, list?: number): Sliced<readonly SourceEvent[]> {
    const ref = refOf(watched, raw)
    const key = nameKey(ref)
    const known = this.#of(watched).get(key)
    const version = textIn(metadataOf(raw), 'resourceVersion')
    if (known !== undefined) {
      known.listed = list ?? known.listed
      if (known.version === version && version !== '') return []
    }
    const parsed = yield* parseInSlices(raw, ref, this.#pool)
    const text = refText(ref)
    this.#setProblems(text, problemsOf(watched, ref, parsed))
    const now = known ?? { version, listed: list ?? 0, inForce: 'nothing', raw: undefined }
    now.version = version
    this.#of(watched).set(key, now)
    const good = parsed.kind === 'ok'
    if (!good && now.inForce === 'good') {
      if (now.raw !== undefined) this.#keep(text, { file: pathOf(watched, ref), object: now.raw })
      return []
    }
    this.#keep(text, undefined)
    const object = good ? parsed.value : parsed.instead
    now.inForce = good ? 'good' : object === undefined ? 'nothing' : 'stand-in'
    now.raw = good && isPolicyMatter(ref.kind) ? bare(watched, raw) : undefined
    return object === undefined ? [] : [{ kind: 'upsert', object }]
  }

  remove(watched: WatchedKind, raw: Raw): readonly SourceEvent[] {
    return this.#drop(watched, nameKey(refOf(watched, raw)))
  }

  /** Drops what was not in this list, nor has come since. */
  keepOnly(watched: WatchedKind, list: number): readonly SourceEvent[] {
    const gone = [...this.#of(watched)].filter(([, known]) => known.listed !== list)
    return gone.flatMap(([key]) => this.#drop(watched, key))
  }

  /** Of no object that is held is its version one of the server's: the next of it is read whatever version it has. */
  forgetVersions(watched: WatchedKind): void {
    for (const known of this.#of(watched).values()) known.version = ''
  }

  count(kind: Kind): number {
    return this.#kinds.get(kind)?.size ?? 0
  }

  /** Notes for the process after this one what has to stay over its start. */
  remember(): void {
    if (this.#lastGood === undefined || this.#remembered === this.#keptRevision) return
    const failed = this.#lastGood.failed
    this.#lastGood.write([...this.#kept.values()])
    if (this.#lastGood.failed === undefined) this.#remembered = this.#keptRevision
    if (this.#lastGood.failed !== failed) this.#revision++
  }

  /** Another number whenever the problems may be others, or what is kept. */
  get problemRevision(): number {
    return this.#revision + this.#keptRevision
  }

  problems(): readonly Problem[] {
    const failed = this.#lastGood?.failed
    const unkept = failed === undefined ? [] : [{ place: undefined, rejected: { ref: '', path: '', reason: failed } }]
    const sorted = [...this.#problems].sort(([a], [b]) => compareText(a, b))
    return [...unkept, ...sorted.flatMap(([, problems]) => problems)]
  }

  /** Refs of objects of which a last good version is in force. */
  kept(): readonly string[] {
    return [...this.#kept.keys()].sort(compareText)
  }

  /** The path of an object that the server has: "/api/v1/namespaces/default/services/web". */
  placeOf({ ref }: Pick<Rejected, 'ref'>): string | undefined {
    const slash = ref.indexOf('/')
    const watched = WATCHED.find(({ entry }) => entry.kind === ref.slice(0, slash))
    const key = ref.slice(slash + 1)
    return watched !== undefined && this.#of(watched).has(key) ? pathOf(watched, namesIn(watched, key)) : undefined
  }

  #drop(watched: WatchedKind, key: string): readonly SourceEvent[] {
    const known = this.#of(watched).get(key)
    if (known === undefined) return []
    this.#of(watched).delete(key)
    const ref = { kind: watched.entry.kind, ...namesIn(watched, key) }
    this.#setProblems(refText(ref), [])
    this.#keep(refText(ref), undefined)
    return known.inForce === 'nothing' ? [] : [{ kind: 'delete', ref }]
  }

  #of({ entry }: WatchedKind): Map<string, Known> {
    const known = this.#kinds.get(entry.kind) ?? new Map<string, Known>()
    this.#kinds.set(entry.kind, known)
    return known
  }

  #setProblems(ref: string, problems: readonly Problem[]): void {
    if (problems.length === 0 && this.#problems.size === 0) return
    if (deepEqual(this.#problems.get(ref) ?? [], problems)) return
    this.#revision++
    if (problems.length === 0) this.#problems.delete(ref)
    else this.#problems.set(ref, problems)
  }

  #keep(ref: string, kept: { readonly file: string; readonly object: Raw } | undefined): void {
    if (kept === undefined ? this.#kept.size === 0 || !this.#kept.has(ref) : this.#kept.get(ref)?.object === kept.object) return
    this.#keptRevision++
    if (kept === undefined) this.#kept.delete(ref)
    else this.#kept.set(ref, kept)
  }
}

/** Most objects have none, and need no path made for them. */
function problemsOf(watched: WatchedKind, ref: Ref, { kind, rejected: all }: Parsed<unknown>): readonly Problem[] {
  if (all.length === 0) return []
  const place = pathOf(watched, ref)
  const part = kind === 'ok' ? { inPart: true as const } : {}
  return all.map((rejected) => ({ place, rejected, ...part }))
}

export function metadataOf(raw: Raw): Raw {
  const { metadata } = raw
  return isObject(metadata) ? metadata : {}
}

export function textIn(raw: Raw, key: string): string {
  const value = raw[key]
  return typeof value === 'string' ? value : ''
}

function refOf({ entry }: WatchedKind, raw: Raw): Ref {
  const metadata = metadataOf(raw)
  return { kind: entry.kind, namespace: entry.namespaced ? textIn(metadata, 'namespace') : '', name: textIn(metadata, 'name') }
}

function pathOf({ apiVersion, kind }: WatchedKind, { namespace, name }: Pick<Ref, 'namespace' | 'name'>): string {
  return objectPath({ apiVersion, kind, namespace, name })
}

/** What a key was made from. */
function namesIn({ entry }: WatchedKind, key: string): Pick<Ref, 'namespace' | 'name'> {
  const slash = entry.namespaced ? key.indexOf('/') : -1
  return { namespace: key.slice(0, Math.max(0, slash)), name: key.slice(slash + 1) }
}

/** In the form of a manifest, without what only the server reads. */
function bare({ apiVersion, kind }: WatchedKind, raw: Raw): Raw {
  const { name, namespace, labels, annotations } = metadataOf(raw)
  return { ...raw, apiVersion, kind, metadata: { name, namespace, labels, annotations } }
}
