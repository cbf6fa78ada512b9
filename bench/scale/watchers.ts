// SPDX-License-Identifier: Apache-2.0
/** Clients that ask an API server for what agents ask for, and count what they get without reading it. Layer: bench. */
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { ApiClient, PAGE } from '#lib/api/client.ts'
import { collectionPath } from '#lib/api/resource.ts'
import type { ApiServer } from '#lib/api/server.ts'
import { WATCHED, type Watched } from '#lib/api/watched.ts'
import { InternalError } from '#lib/base/errors.ts'

const NEWLINE = 0x0a
const ANSWER_MS = 60_000
const JSON_ONLY = { accept: 'application/json' }

export interface Begin {
  readonly watched: Watched
  readonly version: string
}

/** Kinds that the server has, and where their watches begin. */
export async function begins(client: ApiClient): Promise<readonly Begin[]> {
  const found: Begin[] = []
  for (const watched of WATCHED) {
    const { status, text } = await get(client, { path: `${collectionPath(watched)}?limit=1`, packed: false })
    const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1]
    if (status === 200 && version !== undefined) found.push({ watched, version })
  }
  return found
}

/** Bytes of all pages of all kinds. */
export async function listAll(client: ApiClient, kinds: readonly Begin[], packed: boolean): Promise<number> {
  let bytes = 0
  for (const { watched } of kinds) {
    let next = ''
    do {
      const page = await get(client, { path: `${pathOf(watched)}&limit=${PAGE}${next === '' ? '' : `&continue=${next}`}`, packed })
      bytes += page.bytes
      next = /"continue":"([^"]*)"/.exec(page.text)?.[1] ?? ''
    } while (next !== '')
  }
  return bytes
}

/** One node: a connection, and a watch of each kind on it. */
export class Watcher implements AsyncDisposable {
  readonly #client: ApiClient
  readonly #stop = new AbortController()
  bytes = 0
  events = 0

  private constructor(server: ApiServer) {
    this.#client = new ApiClient({ server })
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
    const { status, body } = await this.#client.transport.request({ method: 'GET', path, headers: JSON_ONLY, signal: this.#stop.signal })
    if (status !== 200) throw new InternalError(`watch of ${watched.kind}: ${status}`)
    body.on('error', () => undefined)
    body.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length
      if (watched.kind === 'EndpointSlice') for (const byte of chunk) if (byte === NEWLINE) this.events++
    })
  }
}

async function get(client: ApiClient, { path, packed }: { readonly path: string; readonly packed: boolean }) {
  const headers = { ...JSON_ONLY, ...(packed ? { 'accept-encoding': 'gzip' } : {}) }
  const answer = await client.transport.request({ method: 'GET', path, headers, signal: AbortSignal.timeout(ANSWER_MS) })
  const body = await buffer(answer.body)
  // small ones come as they are
  const text = (answer.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
  return { status: answer.status, bytes: body.length, text }
}

function pathOf(watched: Watched): string {
  const selector = watched.fieldSelector === undefined ? '' : `fieldSelector=${encodeURIComponent(watched.fieldSelector)}`
  return `${collectionPath(watched)}?${selector}`
}
