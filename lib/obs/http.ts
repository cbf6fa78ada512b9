// SPDX-License-Identifier: Apache-2.0
/** One small HTTP server for things a machine polls: health, metrics. Layer: lib/obs. */
import { systemClock } from '#lib/base/clock.ts'
import { Guard, type Guest } from '#lib/base/os/guard.ts'
import { GuardedServer } from '#lib/base/os/guarded-server.ts'
import { readHead, sendPage, type Asked, type Page } from './http-request.ts'

export type { Page } from './http-request.ts'

/** By path; '*' is every path that has no page of its own, and without it those are answered 404. */
export type Pages = Readonly<Record<string, () => Page | Promise<Page>>>

export interface PageServerOptions {
  /** undefined: every address of this machine, of both families */
  readonly host: string | undefined
  /** 0: any free one */
  readonly port: number
  readonly pages: Pages
  /** of several servers together; undefined: this one has its own */
  readonly guard?: Guard | undefined
  /** a page threw: it is answered 500, and reported here */
  readonly onError: (path: string, thrown: unknown) => void
}

interface Made {
  readonly page: Promise<Page>
  /** ms of the clock until when it is good */
  readonly until: number
}

/** A request is a connection. Load balancers may ask one port of a node for each of their hundreds of services. */
const LIMITS = { most: 1024, perPeer: 64, perSecond: 500, sayMs: 2000 }
/** A page that takes this much of the processor is told again for nine times as long: it has a tenth at most. */
const COSTLY_MS = 2
const TIMES = 9
const MOST_AGE_MS = 1000

export function pageGuard(): Guard {
  return new Guard(LIMITS)
}

/** Listens until it is disposed of; connections die with it. */
export class PageServer implements AsyncDisposable {
  readonly #options: PageServerOptions
  readonly #server: GuardedServer
  readonly #made = new Map<string, Made>()

  constructor(options: PageServerOptions) {
    this.#options = options
    this.#server = new GuardedServer({
      guard: options.guard ?? pageGuard(),
      serve: (guest) => {
        readHead(guest, (asked) => void this.#serve(guest, asked))
      },
      allowHalfOpen: true,
      onError: (error) => {
        options.onError('', error)
      },
    })
  }

  /** Resolves with the port once it listens; rejects with Node's error (EADDRINUSE). */
  start(): Promise<number> {
    return this.#server.listenAt(this.#options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]()
  }

  async #serve(guest: Guest, asked: Asked | number): Promise<void> {
    const page = typeof asked === 'number' ? text(asked, 'no request for a page\n') : await this.#answer(asked)
    sendPage(guest, typeof asked === 'number' ? '' : asked.method, page)
  }

  async #answer({ method, path }: Asked): Promise<Page> {
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'method not allowed\n')
    const { pages } = this.#options
    const name = Object.hasOwn(pages, path) ? path : '*'
    const make = pages[name]
    if (make === undefined) return text(404, 'not found\n')
    const made = this.#made.get(name)
    if (made !== undefined && systemClock.now() < made.until) return await made.page
    return await this.#make(name, path, make)
  }

  /** Who asks meanwhile gets the same. */
  async #make(name: string, path: string, make: () => Page | Promise<Page>): Promise<Page> {
    const before = process.threadCpuUsage()
    const page = made(make).catch((thrown: unknown) => {
      this.#options.onError(path, thrown)
      return text(500, 'failed\n')
    })
    this.#made.set(name, { page, until: Infinity })
    await page
    const { user, system } = process.threadCpuUsage(before)
    const ms = (user + system) / 1000
    this.#made.set(name, { page, until: ms < COSTLY_MS ? 0 : systemClock.now() + Math.min(MOST_AGE_MS, TIMES * ms) })
    return await page
  }
}

/** What it throws is a rejection. */
async function made(make: () => Page | Promise<Page>): Promise<Page> {
  return await make()
}

function text(status: number, body: string): Page {
  return { status, type: 'text/plain; charset=utf-8', body }
}
