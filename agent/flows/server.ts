// SPDX-License-Identifier: Apache-2.0
/** The socket on which processes of the node read its flows: GET /flows?since=SEQUENCE answers a line of JSON for each
 * window, for as long as they listen. Layer: agent/flows. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { listenForRoot } from '#lib/base/os/listen.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Flows } from './flows.ts'

export interface FlowServerOptions {
  readonly path: string
  readonly flows: Pick<Flows, 'listen'>
  readonly log: Log
}

/** Imported, the module would load Node's client of its own first, which takes 40 ms of a start. */
const { createServer } = process.getBuiltinModule('node:http')

const PATH = '/flows'
const MOST_READERS = 32
/** What a reader has not taken yet; one that is further behind is cut off. */
const MOST_BYTES = 16 * 1024 * 1024

export class FlowServer implements AsyncDisposable {
  readonly #options: FlowServerOptions
  readonly #server: Server

  constructor(options: FlowServerOptions) {
    this.#options = options
    this.#server = createServer((request, response) => {
      this.#answer(request, response)
    })
    this.#server.maxConnections = MOST_READERS
    // a reader says nothing after its request
    this.#server.requestTimeout = 10_000
  }

  /** Only root may ask. Rejects when there is no such place. */
  async start(): Promise<void> {
    const { path, log } = this.#options
    // this node has one agent, so the agent that listened here is gone
    await listenForRoot(this.#server, path)
    this.#server.on('error', (error) => {
      log.warn({ error }, 'flows.not-served')
    })
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
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve()
      })
      this.#server.closeAllConnections()
    })
  }
}
