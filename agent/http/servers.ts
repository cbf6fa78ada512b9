// SPDX-License-Identifier: Apache-2.0
/** Everything the agent serves over HTTP: its own pages, and the ports of services' health checks. Layer: agent. */
import { systemClock } from '#lib/base/clock.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Pages } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Metrics } from '#lib/obs/metrics.ts'
import type { HealthCheck } from '../compile/desired.ts'
import type { Config } from '../config/config.ts'
import { Listeners } from './listeners.ts'
import type { AgentOptions } from '../run/options.ts'
import { ProxyHealth } from './proxy-health.ts'
import { listening, ownListeners, policyPages } from './pages.ts'
import { healthPages, metricsPages } from '#lib/obs/pages.ts'

export interface HttpServersOptions {
  readonly options: Pick<AgentOptions, 'healthPort' | 'metricsPort'>
  readonly health: Health
  readonly log: Log
  /** of policy, by number */
  readonly ruleNames: () => ReadonlyMap<number, string>
  /** pages beside those of health */
  readonly more: Pages
  /** false while the node is being taken away */
  readonly eligible: () => boolean
}

export class HttpServers implements AsyncDisposable {
  readonly #options: HttpServersOptions
  readonly #proxy: ProxyHealth
  readonly #own: Listeners
  readonly #services: Listeners
  #config: Config | undefined
  #makeMetrics: (() => Promise<Metrics>) | undefined
  #metrics: Promise<Pages> | undefined

  constructor(options: HttpServersOptions) {
    const { health, log, eligible } = options
    const listeners = (condition: string): Listeners => new Listeners({ condition, clock: systemClock, health, log })
    this.#options = options
    this.#proxy = new ProxyHealth({ health, wall: () => systemClock.wall(), eligible })
    this.#own = listeners('ports.own')
    this.#services = listeners('ports.health-checks')
  }

  /** undefined: there is none yet. Takes effect soon; what goes wrong is in health and log. */
  configure(config: Config | undefined): void {
    this.#config = config
    this.#listen()
  }

  /** There is something to count now. `make` is called once, when the first request can come: from then on they count
   * all that is done. */
  serveMetrics(make: () => Promise<Metrics>): void {
    this.#makeMetrics = make
    this.#listen()
  }

  #listen(): void {
    const { options, health, ruleNames, more } = this.#options
    const make = this.#makeMetrics
    const pages = {
      health: () => ({ ...healthPages(health), ...policyPages(ruleNames), ...more }),
      // whatever happens to its port
      metrics: make && (() => (this.#metrics ??= metricsPages(make))),
      'proxy-health': () => this.#proxy.nodePages,
    }
    this.#own.set(ownListeners(listening(options, this.#config), pages))
  }

  setHealthChecks(checks: readonly HealthCheck[]): void {
    this.#services.set(this.#proxy.listeners(checks))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#own[Symbol.asyncDispose]()
    await this.#services[Symbol.asyncDispose]()
  }
}
