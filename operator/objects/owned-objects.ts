// SPDX-License-Identifier: Apache-2.0
/** Keeps objects as they are rendered: applied once, and again when a field of ours is another client's or gone.
 * Layer: operator.
 *
 * Server-side apply is what writes, so fields that we do not render stay as others have them. Nothing is written as
 * long as nothing differs: whether a field differs the server's own account says (owned-fields.ts). */
import { DatastoreLockedError, errorText } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { getOrNone, isAbsent } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { isAppliedAlready } from './applied-already.ts'
import { IGNORE, MANAGED_BY } from '#lib/control/declared-managers.ts'
import { foreignOwner } from './manager.ts'
import { FIELD_MANAGER, ownedFields } from './owned-fields.ts'

export interface OwnedObjectsOptions {
  readonly client: Pick<ApiClient, 'apply' | 'get' | 'delete'>
  readonly log: Log
}

/** Why an object is not as it is rendered. */
export interface Trouble {
  /** "DaemonSet netplane-system/netplane-node" */
  readonly object: string
  readonly reason: 'BelongsToAnother' | 'Refused' | 'Unreachable' | 'DatastoreLocked'
  readonly message: string
}

interface Applied {
  /** what was applied, as text */
  readonly wanted: string
  /** what the server then said was ours */
  readonly fields: string
  readonly generation: number
}

/** Kinds whose pods need all that stands before them. */
const WORKLOADS: ReadonlySet<string> = new Set(['DaemonSet', 'Deployment'])

export class OwnedObjects {
  readonly #options: OwnedObjectsOptions
  /** in the order in which they are applied */
  #desired = new Map<string, ApiObject>()
  readonly #applied = new Map<string, Applied>()
  /** left alone, as its annotation asks */
  readonly #ignored = new Set<string>()
  #troubles: readonly Trouble[] = []
  #leftAlone: string[] = []
  readonly #writes = new Map<string, number>()

  constructor(options: OwnedObjectsOptions) {
    this.#options = options
  }

  /** What would be taken away, if its annotation did not ask to leave it. */
  get leftAlone(): readonly string[] {
    return this.#leftAlone
  }

  /** By kind: how many objects were made, changed or deleted. */
  get writes(): ReadonlyMap<string, number> {
    return this.#writes
  }

  get troubles(): readonly Trouble[] {
    return this.#troubles
  }

  /** True when all of them are as they are rendered, or left alone. */
  get complete(): boolean {
    return this.#troubles.length === 0 && [...this.#desired.keys()].every((key) => this.#isDone(key))
  }

  get desired(): Iterable<string> {
    return this.#desired.keys()
  }

  /** Of the object as the server answered when it was applied; 0: it was not. */
  generationOf(key: string): number {
    return this.#applied.get(key)?.generation ?? 0
  }

  /** What was applied is not known any more: another process may have applied something else since. */
  forget(): void {
    this.#applied.clear()
  }

  /** As they are rendered; the label that says whose they are is added here. */
  setDesired(objects: readonly ApiObject[]): void {
    this.#desired = new Map(objects.map((object) => [textOf(object), managed(object)]))
  }

  /** What the server has now, of any object; undefined: it is gone. */
  saw(key: string, object: ApiObject | undefined): void {
    const applied = this.#applied.get(key)
    if (object !== undefined && isIgnored(object)) this.#ignored.add(key)
    else this.#ignored.delete(key)
    if (applied !== undefined && (object === undefined || ownedFields(object) !== applied.fields)) this.#applied.delete(key)
  }

  /** Writes what differs, as long as `mayAct`. A refusal of one holds up no other but workloads, which would run
   * without it. */
  async apply(mayAct: () => boolean, signal: AbortSignal): Promise<void> {
    const troubles: Trouble[] = []
    for (const [key, object] of this.#desired) {
      if (this.#isDone(key) || (troubles.length > 0 && WORKLOADS.has(object.kind))) continue
      if (!mayAct()) break
      const trouble = await troubleOf(key, () => this.#put(key, object, signal))
      if (trouble !== undefined) troubles.push(trouble)
    }
    this.#troubles = troubles
  }

  /** Takes away what is ours and no longer rendered, once all that is rendered is there. A namespace stays: others'
   * objects may be in it. */
  async prune(present: Iterable<ApiObject>, mayAct: () => boolean, signal: AbortSignal): Promise<void> {
    this.#leftAlone = []
    if (!this.complete) return
    const troubles: Trouble[] = []
    // by the role that a binding gives secrets are deleted
    for (const object of [...present].sort((a, b) => rankOf(a) - rankOf(b))) {
      const key = textOf(object)
      if (this.#desired.has(key) || object.kind === 'Namespace' || ownedFields(object) === '') continue
      if (object.metadata.deletionTimestamp !== undefined) continue
      if (isIgnored(object)) {
        this.#leftAlone.push(key)
        continue
      }
      if (!mayAct()) break
      const trouble = await troubleOf(key, () => this.#take(object, signal))
      if (trouble !== undefined) troubles.push(trouble)
    }
    this.#troubles = troubles
  }

  async #take(object: ApiObject, signal: AbortSignal): Promise<undefined> {
    const { uid } = object.metadata
    try {
      await this.#options.client.delete(namedOf(object), { signal, ...(uid === undefined ? {} : { preconditions: { uid } }) })
      this.#count(object)
      this.#options.log.info({ object: textOf(object) }, 'object.pruned')
    } catch (thrown) {
      if (!isAbsent(thrown)) throw thrown
    }
  }

  #isDone(key: string): boolean {
    const object = this.#desired.get(key)
    return this.#ignored.has(key) || (object !== undefined && this.#applied.get(key)?.wanted === JSON.stringify(object))
  }

  async #put(key: string, object: ApiObject, signal: AbortSignal): Promise<Trouble | undefined> {
    const { client, log } = this.#options
    const found = await getOrNone(client, namedOf(object), { signal })
    if (found !== undefined && isIgnored(found)) {
      this.#ignored.add(key)
      return undefined
    }
    // a namespace is for all that are in it: it gets our labels beside others'
    const owner = found === undefined || found.kind === 'Namespace' || ownedFields(found) !== '' ? undefined : foreignOwner(found)
    if (owner !== undefined)
      return {
        object: key,
        reason: 'BelongsToAnother',
        message: `${key} belongs to ${owner}; with the label ${MANAGED_BY}: ${FIELD_MANAGER} it is ours`,
      }
    const isThere = found !== undefined && isAppliedAlready(object, found)
    const made = isThere ? found : await client.apply(object, { fieldManager: FIELD_MANAGER, force: true, signal })
    if (made.metadata.resourceVersion !== found?.metadata.resourceVersion) {
      this.#count(object)
      log.info({ object: key }, found === undefined ? 'object.created' : 'object.changed')
    }
    this.#applied.set(key, { wanted: JSON.stringify(object), fields: ownedFields(made), generation: made.metadata.generation ?? 0 })
    return undefined
  }

  #count({ kind }: ApiObject): void {
    this.#writes.set(kind, (this.#writes.get(kind) ?? 0) + 1)
  }
}

/** What a request is refused with, as a trouble; undefined: it went well. */
export async function troubleOf(object: string, request: () => Promise<Trouble | undefined>): Promise<Trouble | undefined> {
  try {
    return await request()
  } catch (thrown) {
    if (thrown instanceof DatastoreLockedError) return { object, reason: 'DatastoreLocked', message: errorText(thrown) }
    if (thrown instanceof UnreachableError) return { object, reason: 'Unreachable', message: errorText(thrown) }
    if (thrown instanceof ApiError) return { object, reason: 'Refused', message: errorText(thrown) }
    throw thrown
  }
}

function managed(object: ApiObject): ApiObject {
  const labels = { ...object.metadata.labels, [MANAGED_BY]: FIELD_MANAGER }
  return { ...object, metadata: { ...object.metadata, labels } }
}

function rankOf({ kind }: ApiObject): number {
  return kind === 'Secret' ? 0 : 1
}

function isIgnored({ metadata }: ApiObject): boolean {
  return metadata.annotations?.[IGNORE] === 'true'
}

/** "DaemonSet netplane-system/netplane-node" */
export function textOf({ kind, metadata: { namespace, name } }: ApiObject): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
