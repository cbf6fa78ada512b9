// SPDX-License-Identifier: Apache-2.0
/** Servers on free ports, which answer for the ports that a kube-proxy is about to take: the kernel redirects those to
 * them until another socket listens there. Layer: agent. */
import type { Clock } from '#lib/base/clock.ts'
import type { PageServer } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'
import { pageServer, type Listener } from './listeners.ts'

/** From one port of the node to another. */
export interface Redirects {
  /** in place of those before; false where there is no tool for it */
  set(ports: ReadonlyMap<number, number>): Promise<boolean>
  /** true when there were any */
  end(): Promise<boolean>
}

export interface StandInsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly redirects: Redirects
  /** ports that any process listens on */
  readonly listening: () => ReadonlySet<number>
}

export interface Watch {
  /** ports that are still to be answered for */
  readonly wanted: () => ReadonlySet<number>
  readonly signal: AbortSignal
}

const TICK_MS = 100
/** Without the table the kernel may stop translating at once: requests that have begun are answered before. */
const LINGER_MS = 1000

export class StandIns implements AsyncDisposable {
  readonly #options: StandInsOptions
  readonly #servers: PageServer[] = []
  /** by the port that clients know */
  #ports: ReadonlyMap<number, number> = new Map()

  constructor(options: StandInsOptions) {
    this.#options = options
  }

  /** From then on new connections come to these servers, where the kernel can be told so: a failure is logged. */
  async open(listeners: Iterable<[string, Listener]>): Promise<void> {
    const { log, redirects } = this.#options
    try {
      const ports = new Map<number, number>()
      for (const [name, listener] of listeners) ports.set(listener.port, await this.#serve(name, listener))
      if (ports.size === 0) return
      if (await redirects.set(ports)) this.#note(ports)
      else log.warn({ error: 'nft is not installed' }, 'ports.not-redirected')
    } catch (thrown) {
      log.warn({ error: thrown }, 'ports.not-redirected')
    }
  }

  /** Once the ports are free. Resolves when each is another's or not wanted any more, or the signal aborts. */
  async watch({ wanted, signal }: Watch): Promise<void> {
    const { clock, log, redirects, listening } = this.#options
    try {
      while (this.#ports.size > 0) {
        await clock.sleep(TICK_MS, signal)
        const [taken, still] = [listening(), wanted()]
        const left = new Map([...this.#ports].filter(([port]) => !taken.has(port) && still.has(port)))
        if (left.size === this.#ports.size) continue
        await redirects.set(left)
        this.#note(left)
        if (left.size === 0) await clock.sleep(LINGER_MS, signal)
      }
    } catch (thrown) {
      if (!signal.aborted) log.warn({ error: thrown }, 'ports.not-redirected')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { log, redirects } = this.#options
    try {
      if (this.#servers.length > 0) await redirects.end()
    } catch (thrown) {
      log.warn({ error: thrown }, 'ports.still-redirected')
    }
    for (const server of this.#servers) await server[Symbol.asyncDispose]()
  }

  #note(ports: ReadonlyMap<number, number>): void {
    this.#ports = ports
    this.#options.log.info({ ports: Object.fromEntries(ports) }, 'ports.redirected')
  }

  /** Returns its port. */
  async #serve(name: string, listener: Listener): Promise<number> {
    const server = await pageServer(name, { ...listener, port: 0 }, this.#options.log)
    this.#servers.push(server)
    return await server.start()
  }
}
