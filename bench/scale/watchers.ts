// SPDX-License-Identifier: Apache-2.0
/** Clients that ask an API server for what agents ask for, and count what they get without reading it. Layer: bench. */
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { ApiClient, PAGE } from '#lib/api/client.ts'
import { frames } from '#lib/api/decode/frames.ts'
import { jsonLines } from '#lib/api/decode/json-lines.ts'
import { acceptOf, readList } from '#lib/api/decode/envelopes.ts'
import { collectionPath } from '#lib/api/resource.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { watchedOn, type WatchedKind } from '#lib/api/watch/watch-list.ts'
import { InternalError } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'

const ANSWER_MS = 60_000

export interface Begin {
  readonly watched: WatchedKind
  readonly version: string
}

/** What the agent of this node asks for and the server has, and where the watches begin. */
export async function begins(client: ApiClient, node: string): Promise<readonly Begin[]> {
  const found: Begin[] = []
  for (const watched of watchedOn(node)) {
    const { status, version } = await page(client, { watched, limit: 1, next: '', packed: false })
    if (status === 200 && version !== '') found.push({ watched, version })
  }
  return found
}

/** The same for another node. */
export function kindsOn(node: string, kinds: readonly Begin[]): readonly Begin[] {
  const all = watchedOn(node)
  return kinds.map(({ watched: { entry }, version }) => {
    const watched = all.find((one) => one.entry === entry)
    if (watched === undefined) throw new InternalError(`${entry.kind} is not watched`)
    return { watched, version }
  })
}

/** Bytes of all pages of all kinds. */
export async function listAll(client: ApiClient, kinds: readonly Begin[], packed: boolean): Promise<number> {
  let bytes = 0
  for (const { watched } of kinds) {
    let next = ''
    do {
      const answer = await page(client, { watched, limit: PAGE, next, packed })
      bytes += answer.bytes
      next = answer.next
    } while (next !== '')
  }
  return bytes
}

/** Kinds whose events are awaited. */
export type Told = 'EndpointSlice' | 'NodeNetwork' | 'Node'

/** One node: a connection, and a watch of each kind on it. */
export class Watcher implements AsyncDisposable {
  readonly #client: ApiClient
  readonly #stop = new AbortController()
  readonly #heard = new Map<string, number>()
  bytes = 0

  private constructor(server: ApiServer) {
    this.#client = new ApiClient({ server })
  }

  /** Events of this kind. */
  heard(kind: Told): number {
    return this.#heard.get(kind) ?? 0
  }

  /** Resolves when all watches have begun. */
  static async start(server: ApiServer, kinds: readonly Begin[]): Promise<Watcher> {
    const watcher = new Watcher(server)
    await Promise.all(kinds.map((begin) => watcher.#watch(begin)))
    return watcher
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#client[Symbol.asyncDispose]()
  }

  async #watch({ watched, version }: Begin): Promise<void> {
    const path = `${pathOf(watched)}&watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion=${version}`
    const headers = { accept: acceptOf(watched.message, 'watch') }
    const { status, body } = await this.#client.transport.request({ method: 'GET', path, headers, signal: this.#stop.signal })
    if (status !== 200) throw new InternalError(`watch of ${watched.kind}: ${status}`)
    // until it is ended from here
    this.#count(watched, body).catch(() => undefined)
  }

  async #count({ kind, message }: WatchedKind, body: AsyncIterable<Buffer>): Promise<void> {
    const counted = this.#counted(body)
    for await (const parts of message === undefined ? jsonLines(counted) : frames(counted))
      this.#heard.set(kind, (this.#heard.get(kind) ?? 0) + parts.length)
  }

  async *#counted(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.bytes += chunk.length
      yield chunk
    }
  }
}

interface PageOf {
  readonly watched: WatchedKind
  readonly limit: number
  /** the token of the page before; empty for the first one */
  readonly next: string
  readonly packed: boolean
}

async function page(client: ApiClient, { watched, limit, next, packed }: PageOf) {
  const { message } = watched
  const path = `${pathOf(watched)}&limit=${limit}${next === '' ? '' : `&continue=${encodeURIComponent(next)}`}`
  const headers = { accept: acceptOf(message, 'list'), ...(packed ? { 'accept-encoding': 'gzip' } : {}) }
  const answer = await client.transport.request({ method: 'GET', path, headers, signal: AbortSignal.timeout(ANSWER_MS) })
  const body = await buffer(answer.body)
  // small ones come as they are
  const bytes = answer.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
  // what refuses need not be an object
  const list: unknown = answer.status >= 400 ? {} : message === undefined ? JSON.parse(bytes.toString()) : readList(bytes, message)
  const metadata = isObject(list) && isObject(list['metadata']) ? list['metadata'] : {}
  const text = (key: string): string => (typeof metadata[key] === 'string' ? metadata[key] : '')
  return { status: answer.status, bytes: body.length, version: text('resourceVersion'), next: text('continue') }
}

function pathOf(watched: WatchedKind): string {
  const selector = watched.fieldSelector === undefined ? '' : `fieldSelector=${encodeURIComponent(watched.fieldSelector)}`
  return `${collectionPath(watched)}?${selector}`
}
