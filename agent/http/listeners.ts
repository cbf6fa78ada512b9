// SPDX-License-Identifier: Apache-2.0
/** HTTP servers that come and go as configured. A port that cannot be bound is reported, and retried. Layer: agent. */
import { backoffMs } from '#lib/base/backoff.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { Guard } from '#lib/base/os/guard.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Pages, PageServer } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'

export interface Listener {
  /** undefined: every address of this node, of both families */
  readonly host: string | undefined
  readonly port: number
  /** made when it begins to listen */
  readonly pages: () => Pages | Promise<Pages>
}

export interface ListenersOptions {
  /** name of the condition that fails while a port cannot be bound; the agent stays ready */
  readonly condition: string
  /** a client has one share and one rate of all of these servers, which may be hundreds */
  readonly isOneShare?: boolean
  readonly clock: Clock
  readonly health: Health
  readonly log: Log
}

/** Another proxy may be about to leave a port. */
const RETRY = { firstMs: 100, maxMs: 400 }

/** Libraries are loaded with the first server: an agent without any does not pay for them. */
export class Listeners implements AsyncDisposable {
  readonly #options: ListenersOptions
  readonly #running = new Map<string, { readonly where: string; readonly server: PageServer }>()
  readonly #refused = new Map<string, string>()
  #wanted: ReadonlyMap<string, Listener> = new Map()
  #changed = false
  #working: Promise<void> | undefined
  #attempt = 0
  #stopRetry: (() => void) | undefined
  #guard: Guard | undefined

  constructor(options: ListenersOptions) {
    this.#options = options
    options.health.expect(options.condition, 'none')
  }

  /** Takes effect soon. One whose name and place stay keeps its server, and the pages it began with. */
  set(wanted: ReadonlyMap<string, Listener>): void {
    this.#wanted = wanted
    this.#attempt = 0
    this.#kick()
  }

  /** Is there a server of this name now. */
  holds(name: string): boolean {
    return this.#running.has(name)
  }

  /** What was set has been done, or tried. */
  async settled(): Promise<void> {
    await this.#working
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.set(new Map())
    await this.settled()
  }

  #kick(): void {
    this.#stopRetry?.()
    this.#stopRetry = undefined
    this.#changed = true
    this.#working ??= this.#work()
  }

  async #work(): Promise<void> {
    while (this.#changed) {
      this.#changed = false
      await this.#close()
      for (const [name, listener] of this.#wanted) if (!this.#running.has(name)) await this.#open(name, listener)
    }
    this.#working = undefined
    this.#report()
  }

  /** First, so that a port can go from one to another. */
  async #close(): Promise<void> {
    for (const name of this.#refused.keys()) if (!this.#wanted.has(name)) this.#refused.delete(name)
    for (const [name, { where, server }] of this.#running) {
      const wanted = this.#wanted.get(name)
      if (wanted !== undefined && whereOf(wanted) === where) continue
      this.#running.delete(name)
      await server[Symbol.asyncDispose]()
    }
  }

  async #open(name: string, listener: Listener): Promise<void> {
    const { log, isOneShare = false } = this.#options
    const { host, port } = listener
    if (isOneShare) this.#guard ??= (await import('#lib/obs/http.ts')).pageGuard()
    const server = await pageServer(name, { ...listener, guard: this.#guard }, log)
    try {
      const actual = await server.start()
      log.info({ host, port: actual }, `${name}.listening`)
      this.#running.set(name, { where: whereOf({ host, port }), server })
      this.#refused.delete(name)
    } catch (thrown) {
      const reason = errorText(thrown)
      if (this.#refused.get(name) !== reason) log.error({ host, port, error: thrown }, `${name}.not-listening`)
      this.#refused.set(name, reason)
    }
  }

  #report(): void {
    const { condition, health, clock } = this.#options
    if (this.#refused.size === 0) {
      health.pass(condition)
      return
    }
    health.fail(condition, [...this.#refused].map(([name, reason]) => `${name}: ${reason}`).join('; '))
    this.#stopRetry = clock.after(backoffMs(RETRY, this.#attempt++), () => {
      this.#kick()
    })
  }
}

/** It does not listen yet. Without a guard it has its own. */
export async function pageServer(
  name: string,
  { host, port, pages, guard }: Listener & { readonly guard?: Guard | undefined },
  log: Log,
): Promise<PageServer> {
  const { PageServer } = await import('#lib/obs/http.ts')
  const onError = (path: string, thrown: unknown): void => {
    log.error({ path, error: thrown }, `${name}.failed`)
  }
  return new PageServer({ host, port, pages: await pages(), guard, onError })
}

function whereOf({ host, port }: Pick<Listener, 'host' | 'port'>): string {
  return `${host ?? ''}:${port}`
}
