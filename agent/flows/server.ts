// SPDX-License-Identifier: Apache-2.0
/** The socket on which processes of the node read its flows: GET /flows?since=SEQUENCE answers a line of JSON for each
 * window, for as long as they listen. Layer: agent/flows. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Guard } from '#lib/base/os/guard.ts'
import { serveHttp } from '#lib/base/os/guarded-http.ts'
import { GuardedServer } from '#lib/base/os/guarded-server.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Flows } from './flows.ts'

export interface FlowServerOptions {
  readonly path: string
  readonly flows: Pick<Flows, 'listen'>
  readonly log: Log
}

const PATH = '/flows'
/** Readers say nothing after their request. */
const LIMITS = { most: 32, perPeer: 32, perSecond: 100, sayMs: 2000 }
/** What a reader has not taken yet; one that is further behind is cut off. */
const MOST_BYTES = 16 * 1024 * 1024

export class FlowServer implements AsyncDisposable {
  readonly #options: FlowServerOptions
  readonly #server: GuardedServer

  constructor(options: FlowServerOptions) {
    this.#options = options
    const serve = serveHttp((request, response) => {
      this.#answer(request, response)
    })
    const onError = (error: Error): void => {
      options.log.warn({ error }, 'flows.not-served')
    }
    this.#server = new GuardedServer({ guard: new Guard(LIMITS), serve, onError, allowHalfOpen: true })
  }

  /** Only root may ask. Rejects when there is no such place. */
  start(): Promise<void> {
    // this node has one agent, so the agent that listened here is gone
    return this.#server.listenForRoot(this.#options.path)
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'GET' || request.url?.split('?', 1)[0] !== PATH) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('GET /flows\n')
      return
    }
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.flushHeaders()
    const since = Number(new URLSearchParams(request.url.split('?')[1]).get('since') ?? 0)
    const listening = this.#options.flows.listen((updates) => {
      this.#write(response, updates)
    }, since)
    response.on('close', () => {
      listening[Symbol.dispose]()
    })
  }

  #write(response: ServerResponse, updates: readonly FlowUpdate[]): void {
    if (response.writableLength > MOST_BYTES) {
      this.#options.log.warn({ bytes: response.writableLength }, 'flows.reader-cut')
      response.destroy()
      return
    }
    response.write(updates.map((update) => `${JSON.stringify(update)}\n`).join(''))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]()
  }
}
