// SPDX-License-Identifier: Apache-2.0
/** /flows and /flows-filter-hints over HTTP, until it is disposed of. Layer: flows. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Guard } from '#lib/base/os/guard.ts'
import { serveHttp } from '#lib/base/os/guarded-http.ts'
import { GuardedServer } from '#lib/base/os/guarded-server.ts'
import type { Aggregator } from '../aggregator.ts'
import { FilterError } from '../filter/filter-error.ts'
import { listHints } from '../query/hints.ts'
import { listFlows } from '../query/list.ts'
import { EVER, rangeOf } from '../query/range.ts'
import { LIMITS, sendEvents, type Limits } from './events.ts'
import { flowsAsked, hintsAsked } from './query.ts'
import { flowShape, hintShape, totalShape } from './shapes.ts'

/** A filter is in the first line of a request. */
const MOST_HEADER_BYTES = 1 << 16
const GUARD = { most: 1000, perPeer: 250, perSecond: 200, sayMs: 2000 }
/** Streams beside each other. */
const MOST_STREAMS = 200
/** Where those are who reach it behind a page. */
const PREFIX = '/whisker-backend'

interface Answer {
  readonly status: number
  readonly body: unknown
}

export class RestServer implements AsyncDisposable {
  readonly #aggregator: Aggregator
  readonly #server: GuardedServer
  readonly #limits: Limits
  #streams = 0

  constructor(aggregator: Aggregator, limits: Limits = LIMITS) {
    this.#limits = limits
    this.#aggregator = aggregator
    const serve = serveHttp((request, response) => void this.#serve(request, response), { maxHeaderSize: MOST_HEADER_BYTES })
    this.#server = new GuardedServer({ guard: new Guard(GUARD), serve, allowHalfOpen: true })
  }

  /** Resolves with the port; rejects with Node's error (EADDRINUSE). */
  start(host: string | undefined, port: number): Promise<number> {
    return this.#server.listenAt({ host, port })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer | undefined
    try {
      answer = await this.#answer(request, response)
    } catch (thrown) {
      answer = this.#failure(thrown)
    }
    if (answer === undefined) return
    if (response.headersSent) {
      response.destroy()
      return
    }
    const body = Buffer.from(`${JSON.stringify(answer.body)}\n`)
    response.writeHead(answer.status, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  }

  /** undefined: it is answered. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Answer | undefined> {
    const url = request.url ?? ''
    const end = url.includes('?') ? url.indexOf('?') : url.length
    const [path, query] = [url.slice(0, end), url.slice(end + 1)]
    const route = path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length) : path
    if (route !== '/flows' && route !== '/flows-filter-hints') return { status: 404, body: { error: 'no such path' } }
    if (request.method !== 'GET') return { status: 405, body: { error: 'only GET' } }
    if (route === '/flows-filter-hints') return await this.#hints(query)
    const asked = flowsAsked(query)
    if (!asked.watch) return await this.#flows(asked)
    if (this.#streams >= MOST_STREAMS) return { status: 503, body: { error: `${MOST_STREAMS} streams are open` } }
    this.#streams++
    try {
      const lastId = request.headers['last-event-id']
      const asking = { asked, lastId: typeof lastId === 'string' ? lastId : '', limits: this.#limits }
      await sendEvents(this.#aggregator, asking, response)
    } finally {
      this.#streams--
    }
    return undefined
  }

  async #flows({ from, to, filter, sort, page }: ReturnType<typeof flowsAsked>): Promise<Answer> {
    const { store, now } = this.#aggregator
    const range = rangeOf({ from, to }, now(), 'startTimeLt')
    const found = await listFlows((asked) => store.read(asked), { range, filter, sort, page })
    const items = found.items.map(({ window, last }) => flowShape(window, last))
    return { status: 200, body: { total: totalShape(found), items: items.length === 0 ? null : items } }
  }

  async #hints(query: string): Promise<Answer> {
    const { store } = this.#aggregator
    const { hint, filter, page } = hintsAsked(query)
    const found = await listHints((asked) => store.read(asked), { range: EVER, filter, page, hint })
    return { status: 200, body: { total: totalShape(found), items: found.items.map((value) => hintShape(value, hint)) } }
  }

  #failure(thrown: unknown): Answer {
    if (thrown instanceof FilterError) return { status: 400, body: { error: thrown.message, field: thrown.field } }
    this.#aggregator.failed(thrown)
    return { status: 500, body: { error: 'Internal Server Error' } }
  }
}
