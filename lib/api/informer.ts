// SPDX-License-Identifier: Apache-2.0
/** The objects of a collection as the server has them: listed once, then watched. Layer: lib/api. */
import { isDeepStrictEqual } from 'node:util'
import { eachInSlices } from '../base/async/slices.ts'
import { backoffMs } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import { isObject } from '../base/object.ts'
import type { ApiClient } from './client.ts'
import { ApiError, isExpired, refusalOf, UnreachableError } from './errors.ts'
import { isApiObject, type ApiObject, type Collection } from './resource.ts'

export interface InformerOptions {
  readonly client: Pick<ApiClient, 'list' | 'pages' | 'watch'>
  readonly clock: Clock
  readonly collection: Collection
  readonly labelSelector?: string
  /** what of an object is kept; undefined: all of it. Where that is the same the object has not changed. */
  readonly keep?: (object: ApiObject) => ApiObject
  /** called after each change, and when the list was read for the first time */
  readonly onChange: (informer: Informer) => void
  /** called with what has failed, before it is tried again */
  readonly onFailure: (error: Error) => void
}

/** A watch that ends sooner by itself is begun again after a rest. */
const SHORT_MS = 5000
/** A watch ends then, and another begins where it was. */
const WATCH_SECONDS = 300
const AGAIN = { firstMs: 500, maxMs: 30_000 }

export class Informer {
  readonly #options: InformerOptions
  #objects = new Map<string, ApiObject>()
  /** where the next watch begins; undefined: list first */
  #version: string | undefined
  #synced = false

  constructor(options: InformerOptions) {
    this.#options = options
  }

  get collection(): Collection {
    return this.#options.collection
  }

  /** All of it has been read once. */
  get synced(): boolean {
    return this.#synced
  }

  /** By "namespace/name", or "/name". */
  get objects(): ReadonlyMap<string, ApiObject> {
    return this.#objects
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const isOver = (): boolean => signal.aborted
    let failures = 0
    while (!isOver()) {
      const began = clock.now()
      try {
        if (this.#version === undefined) await this.#list(signal)
        await this.#watch(signal)
      } catch (thrown) {
        if (isOver()) return
        if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
        if (isExpired(thrown)) this.#version = undefined
        else this.#options.onFailure(thrown)
      }
      if (clock.now() - began >= SHORT_MS) failures = 0
      else await clock.sleep(backoffMs(AGAIN, failures++, Math.random()), signal).catch(() => undefined)
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, clock, collection, labelSelector, onChange, keep = whole } = this.#options
    const objects = new Map<string, ApiObject>()
    let version = ''
    for await (const page of client.pages(collection, { ...selectors(labelSelector), signal })) {
      for await (const item of eachInSlices(page.items, clock)) {
        const object = { apiVersion: collection.apiVersion, kind: collection.kind, ...item }
        if (isApiObject(object)) objects.set(keyOf(object), keep(object))
      }
      version = page.resourceVersion
    }
    this.#objects = objects
    this.#version = version
    this.#synced = true
    onChange(this)
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, collection, labelSelector, onChange } = this.#options
    const from = { resourceVersion: this.#version ?? '', timeoutSeconds: WATCH_SECONDS, signal }
    for await (const events of client.watch(collection, { ...from, ...selectors(labelSelector) })) {
      let changed = false
      for (const event of events) changed = this.#take(event) || changed
      if (changed) onChange(this)
    }
  }

  /** True when an object is another by it. */
  #take(event: unknown): boolean {
    const { type, object } = isObject(event) ? event : {}
    if (type === 'ERROR') throw refusalOf(object, { status: 500, request: `watch of ${this.collection.kind}` })
    const version = isObject(object) && isObject(object['metadata']) ? object['metadata']['resourceVersion'] : undefined
    if (typeof version === 'string') this.#version = version
    if (type === 'BOOKMARK' || !isApiObject(object)) return false
    if (type === 'DELETED') return this.#objects.delete(keyOf(object))
    const { keep } = this.#options
    const [before, after] = [this.#objects.get(keyOf(object)), keep?.(object) ?? object]
    if (keep !== undefined && isDeepStrictEqual(before, after)) return false
    this.#objects.set(keyOf(object), after)
    return true
  }
}

function whole(object: ApiObject): ApiObject {
  return object
}

export function keyOf({ metadata: { namespace = '', name } }: Pick<ApiObject, 'metadata'>): string {
  return `${namespace}/${name}`
}

function selectors(labelSelector: string | undefined): { labelSelector?: string } {
  return labelSelector === undefined ? {} : { labelSelector }
}
