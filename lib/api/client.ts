// SPDX-License-Identifier: Apache-2.0
/** Objects of an API server: read, made, changed and deleted. Layer: lib/api.
 *
 * Each call rejects with ApiError when the server refuses (`isRefused(error, 'NotFound')`), with UnreachableError
 * when it cannot be asked or does not answer in time. It does not retry: only the caller knows what a second
 * attempt would mean. */
import { eachInSlices } from '../base/async/slices.ts'
import { systemClock, type Clock } from '../base/clock.ts'
import { acceptOf } from './decode/envelopes.ts'
import { answerOf, answerText, eventsOf, pageOf, type Page } from './decode/answer.ts'
import { UnreachableError } from './errors.ts'
import type { Message } from './decode/protobuf.ts'
import { collectionPath, isApiObject, namedOf, objectPath, type ApiObject, type Collection, type Named } from './resource.ts'
import { Transport, type HttpResponse, type TransportOptions } from './connection/transport.ts'

export interface CallOptions {
  readonly signal?: AbortSignal
  /** for the whole of it; 30 s when not given */
  readonly timeoutMs?: number
}

export interface WriteOptions extends CallOptions {
  /** "status": that part alone is written */
  readonly subresource?: string
  readonly dryRun?: boolean
  /** our name as an owner of fields, in metadata.managedFields */
  readonly fieldManager?: string
  /** a field that the server does not know is refused; else it is dropped without a word */
  readonly strict?: boolean
}

export interface PatchOptions extends WriteOptions {
  /** strategic: a merge that knows the keys of lists, of Kubernetes' own kinds; apply: the whole of what we want, as
   * the server merges it with what others want */
  readonly type: 'merge' | 'strategic' | 'json' | 'apply'
  /** with apply: takes fields over that others have set */
  readonly force?: boolean
}

export interface LogOptions extends CallOptions {
  readonly container: string
  /** of its run before this one */
  readonly previous?: boolean
  readonly sinceSeconds?: number
  /** the last ones */
  readonly tailLines?: number
  /** of these, the first ones */
  readonly limitBytes?: number
}

export interface ListOptions extends CallOptions {
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** of each object its metadata alone */
  readonly metadataOnly?: boolean
  /** objects a page; 250 when not given */
  readonly limit?: number
  /** what is read of each where the server gives Protocol Buffers; undefined: as JSON, all of it */
  readonly message?: Message | undefined
}

export interface WatchOptions {
  readonly resourceVersion: string
  /** the server ends it then */
  readonly timeoutSeconds: number
  readonly fieldSelector?: string | undefined
  readonly labelSelector?: string | undefined
  /** as of lists */
  readonly message?: Message | undefined
  readonly signal: AbortSignal
}

export interface DeleteOptions extends WriteOptions {
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground'
  readonly gracePeriodSeconds?: number
  /** only if it is still that one */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** Beyond this a page is a burden for both sides. */
export const PAGE = 250
/** No cluster has as many objects of a kind: a server that sends more pages never ends. */
const MOST_PAGES = 4000
const TIMEOUT_MS = 30_000
const FIELD_MANAGER = 'netplane'
const METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

type Query = Readonly<Record<string, string | number | boolean | undefined>>

interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Query
  readonly contentType?: string
  readonly body?: unknown
  /** in which form the answer is wanted, where that is not JSON */
  readonly accept?: string | undefined
}

export class ApiClient implements AsyncDisposable {
  readonly transport: Transport
  readonly #clock: Clock

  constructor(options: TransportOptions) {
    this.transport = new Transport(options)
    this.#clock = options.clock ?? systemClock
  }

  async get(named: Named, options: WriteOptions = {}): Promise<ApiObject> {
    return await this.#object({ ...options, method: 'GET', path: objectPath(named, options.subresource) })
  }

  /** All of them, page by page. */
  async list(collection: Collection, options: ListOptions = {}): Promise<readonly ApiObject[]> {
    const { apiVersion, kind } = collection
    const objects: ApiObject[] = []
    for await (const { items } of this.pages(collection, options))
      // items of a list leave out what they are, or say that they are metadata
      for await (const item of eachInSlices(items, this.#clock)) {
        const object = { ...item, apiVersion, kind }
        if (isApiObject(object)) objects.push(object)
      }
    return objects
  }

  /** The resourceVersion of the last page is that of the whole: where a watch is to begin. */
  async *pages(collection: Collection, options: ListOptions = {}): AsyncGenerator<Page> {
    const { labelSelector, fieldSelector, metadataOnly = false, limit = PAGE, message } = options
    const accept = metadataOnly ? METADATA : acceptOf(message, 'list')
    const readPage = (response: HttpResponse, request: string): Promise<Page> => pageOf(response, request, { message, clock: this.#clock })
    let next = ''
    for (let pages = 1; pages === 1 || next !== ''; pages++) {
      if (pages > MOST_PAGES) throw new UnreachableError(`list of ${collection.kind}: more than ${MOST_PAGES} pages`)
      const query = { limit, labelSelector, fieldSelector, continue: next === '' ? undefined : next }
      const page = await this.#call({ ...options, accept, method: 'GET', path: collectionPath(collection), query }, readPage)
      yield page
      if (page.continue === next && next !== '') throw new UnreachableError(`list of ${collection.kind}: its pages do not end`)
      next = page.continue
    }
  }

  /** Events as they come, an empty batch when it begins; ends when the server ends it. Bookmarks are among them. */
  async *watch(collection: Collection, { signal, message, ...options }: WatchOptions): AsyncGenerator<readonly unknown[]> {
    const path = collectionPath(collection) + queryText({ ...options, watch: true, allowWatchBookmarks: true })
    const name = `watch of ${collection.kind}`
    const headers = { accept: acceptOf(message, 'watch') }
    const response = await this.transport.request({ method: 'GET', path, headers, signal })
    if (response.status !== 200) await answerOf(response, name, message)
    yield []
    try {
      yield* eventsOf(response, name, message)
    } catch (thrown) {
      signal.throwIfAborted()
      throw thrown instanceof UnreachableError ? thrown : new UnreachableError(name, thrown)
    }
  }

  async create(object: ApiObject, options: WriteOptions = {}): Promise<ApiObject> {
    const path = options.subresource === undefined ? collectionPath(namedOf(object)) : objectPath(namedOf(object), options.subresource)
    return await this.#object({ ...options, method: 'POST', path, query: queryOf(options), body: object })
  }

  /** Replaces it; refused as Conflict when its resourceVersion is another one by now. */
  async update(object: ApiObject, options: WriteOptions = {}): Promise<ApiObject> {
    const path = objectPath(namedOf(object), options.subresource)
    return await this.#object({ ...options, method: 'PUT', path, query: queryOf(options), body: object })
  }

  async patch(named: Named, patch: unknown, options: PatchOptions): Promise<ApiObject> {
    const { type, force, subresource } = options
    return await this.#object({
      ...options,
      method: 'PATCH',
      path: objectPath(named, subresource),
      query: { ...queryOf(options), ...(type === 'apply' ? { force } : {}) },
      contentType: PATCH_TYPES[type],
      body: patch,
    })
  }

  /** Server-side apply: made or changed so that it has these fields. */
  async apply(object: ApiObject, options: Omit<PatchOptions, 'type'> = {}): Promise<ApiObject> {
    return await this.patch(namedOf(object), object, { force: true, ...options, type: 'apply' })
  }

  async delete(named: Named, options: DeleteOptions = {}): Promise<void> {
    const { propagationPolicy, gracePeriodSeconds, preconditions } = options
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy, gracePeriodSeconds, preconditions }
    const query = options.dryRun === true ? { dryRun: 'All' } : {}
    await this.request({ ...options, method: 'DELETE', path: objectPath(named, options.subresource), query, body })
  }

  /** What a container of a pod has written. */
  async log(pod: Named, options: LogOptions): Promise<string> {
    const { container, previous, sinceSeconds, tailLines, limitBytes } = options
    const query = { container, previous, sinceSeconds, tailLines, limitBytes, timestamps: true }
    return await this.#call({ ...options, method: 'GET', path: objectPath(pod, 'log'), query }, answerText)
  }

  /** Any request; the answer as its JSON would be. */
  async request(call: Call): Promise<unknown> {
    return await this.#call(call, answerOf)
  }

  async #call<T>(call: Call, read: (response: HttpResponse, request: string) => Promise<T>): Promise<T> {
    const late = AbortSignal.timeout(call.timeoutMs ?? TIMEOUT_MS)
    const signal = call.signal === undefined ? late : AbortSignal.any([call.signal, late])
    const name = `${call.method} ${call.path}`
    try {
      const response = await this.transport.request({
        method: call.method,
        path: call.path + queryText(call.query),
        headers: {
          accept: call.accept ?? 'application/json',
          ...(this.#isFar ? { 'accept-encoding': 'gzip' } : {}),
          ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        signal,
      })
      return await read(response, name)
    } catch (thrown) {
      if (late.aborted && call.signal?.aborted !== true) throw new UnreachableError(`${name}: no answer in time`)
      throw thrown
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transport[Symbol.asyncDispose]()
  }

  /** Packing costs both sides CPU, and pays only where bytes cost more. */
  get #isFar(): boolean {
    const address = this.transport.connected?.address
    return address !== undefined && !/^(127\.|::1$)/.test(address)
  }

  async #object(call: Call): Promise<ApiObject> {
    const answer = await this.request(call)
    if (!isApiObject(answer)) throw new UnreachableError(`${call.method} ${call.path}: the answer is no object`)
    return answer
  }
}

function queryOf({ dryRun, strict, fieldManager = FIELD_MANAGER }: WriteOptions): Query {
  return { fieldManager, dryRun: dryRun === true ? 'All' : undefined, fieldValidation: strict === true ? 'Strict' : undefined }
}

function queryText(query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}
