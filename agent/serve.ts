// SPDX-License-Identifier: Apache-2.0
/** Health and metrics over HTTP, as the settings want them at the moment. Layer: agent. */
import type { Health } from '#lib/obs/health.ts'
import type { Page, PageServer } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Metrics } from '#lib/obs/metrics.ts'
import { defaultConfig, type Config, type Served } from './config/config.ts'
import type { AgentOptions } from './options.ts'

export interface Listen {
  readonly host: string
  /** undefined: off */
  readonly port: number | undefined
}

export interface ServeOptions {
  readonly health: Health
  readonly log: Log
  /** made when the first request for metrics can come */
  readonly metrics: () => Promise<Metrics>
}

type Pages = Readonly<Record<string, () => Page | Promise<Page>>>

export interface Listening {
  readonly health: Listen
  readonly metrics: Listen
}

/** Flags go before the configuration; until there is one, health is at its default place. */
export function listening(options: Pick<AgentOptions, 'healthPort' | 'metricsPort'>, config: Config = defaultConfig): Listening {
  return { health: place(options.healthPort, config.health), metrics: place(options.metricsPort, config.prometheus) }
}

function place(flag: number | undefined, served: Served): Listen {
  // Node would take ::1 for it, where nobody asks
  const host = served.host === 'localhost' ? '127.0.0.1' : served.host
  if (flag === undefined) return { host, port: served.enabled ? served.port : undefined }
  return { host, port: flag === 0 ? undefined : flag }
}

/** Libraries are loaded with the first server: an agent without any does not pay for them. */
export class Endpoints implements AsyncDisposable {
  readonly #options: ServeOptions
  readonly #running = new Map<string, { readonly where: string; readonly server: PageServer }>()
  #done: Promise<void> = Promise.resolve()

  constructor(options: ServeOptions) {
    this.#options = options
  }

  /** Takes effect soon; what goes wrong is in the log. */
  set(listening: Listening): void {
    this.#done = this.#done.then(() => this.#apply(listening))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#done
    for (const { server } of this.#running.values()) await server[Symbol.asyncDispose]()
    this.#running.clear()
  }

  async #apply(listening: Listening): Promise<void> {
    const { health } = this.#options
    await this.#serve('health', listening.health, () =>
      Promise.resolve({ '/liveness': () => verdict(health, 'live'), '/readiness': () => verdict(health, 'ready') }),
    )
    await this.#serve('metrics', listening.metrics, async () => {
      const metrics = await this.#options.metrics()
      return { '/metrics': async () => ({ status: 200, type: metrics.contentType, body: await metrics.text() }) }
    })
  }

  /** A port that cannot be had is said, and does not stop the agent. */
  async #serve(name: string, { host, port }: Listen, pages: () => Promise<Pages>): Promise<void> {
    const where = port === undefined ? '' : `${host}:${port}`
    const before = this.#running.get(name)
    if ((before?.where ?? '') === where) return
    this.#running.delete(name)
    await before?.server[Symbol.asyncDispose]()
    if (port === undefined) return
    const { log } = this.#options
    const { PageServer } = await import('#lib/obs/http.ts')
    const server = new PageServer({
      host,
      port,
      pages: await pages(),
      onError: (path, thrown) => {
        log.error({ path, error: thrown }, `${name}.failed`)
      },
    })
    try {
      log.info({ host, port: await server.start() }, `${name}.listening`)
      this.#running.set(name, { where, server })
    } catch (thrown) {
      log.error({ host, port, error: thrown }, `${name}.not-listening`)
    }
  }
}

function verdict(health: Health, what: 'ready' | 'live'): Page {
  const report = health.report()
  return { status: report[what] ? 200 : 503, type: 'application/json', body: `${JSON.stringify(report)}\n` }
}
