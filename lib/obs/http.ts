// SPDX-License-Identifier: Apache-2.0
/** One small HTTP server for things a machine polls: health, metrics. Layer: lib/obs. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
  /** besides the content type */
  readonly headers?: Readonly<Record<string, string>>
}

/** By path; '*' is every path that has no page of its own, and without it those are answered 404. */
export type Pages = Readonly<Record<string, () => Page | Promise<Page>>>

export interface PageServerOptions {
  /** undefined: every address of this machine, of both families */
  readonly host: string | undefined
  /** 0: any free one */
  readonly port: number
  readonly pages: Pages
  /** a page threw: it is answered 500, and reported here */
  readonly onError: (path: string, thrown: unknown) => void
}

/** Imported, the module would load Node's client of its own first, which takes 40 ms of a start. */
const { createServer } = process.getBuiltinModule('node:http')

/** Those outside must not take every file descriptor of the process. */
const MAX_CONNECTIONS = 512

/** Listens until it is disposed of; connections die with it. */
export class PageServer implements AsyncDisposable {
  readonly #options: PageServerOptions
  readonly #server: Server

  constructor(options: PageServerOptions) {
    this.#options = options
    this.#server = createServer((request, response) => {
      void this.#answer(request.method ?? '', request.url ?? '').then((page) => {
        response.writeHead(page.status, { 'content-type': page.type, ...page.headers })
        response.end(request.method === 'HEAD' ? '' : page.body)
      })
    })
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /** Resolves with the port once it listens; rejects with Node's error (EADDRINUSE). */
  start(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      const { host, port } = this.#options
      this.#server.listen(host === undefined ? { port } : { host, port }, () => {
        this.#server.off('error', reject)
        this.#server.on('error', (thrown) => {
          this.#options.onError('', thrown)
        })
        const address = this.#server.address()
        resolve(isAddressInfo(address) ? address.port : 0)
      })
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve()
      })
      this.#server.closeAllConnections()
    })
  }

  async #answer(method: string, url: string): Promise<Page> {
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'method not allowed\n')
    const path = url.split('?', 1)[0] ?? ''
    const { pages } = this.#options
    const page = pages[Object.hasOwn(pages, path) ? path : '*']
    if (page === undefined) return text(404, 'not found\n')
    try {
      return await page()
    } catch (thrown) {
      this.#options.onError(path, thrown)
      return text(500, 'failed\n')
    }
  }
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

function text(status: number, body: string): Page {
  return { status, type: 'text/plain; charset=utf-8', body }
}
