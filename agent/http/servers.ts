// SPDX-License-Identifier: Apache-2.0
/** Everything the agent serves over HTTP: its own pages, and the ports of services' health checks. Layer: agent. */
import { systemClock } from '#lib/base/clock.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Pages } from '#lib/obs/http.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Metrics } from '#lib/obs/metrics.ts'
import type { HealthCheck } from '../compile/desired.ts'
import type { Config } from '../config/config.ts'
import { Listeners, type Listener } from './listeners.ts'
import type { AgentOptions } from '../run/options.ts'
import { ProxyHealth } from './proxy-health.ts'
import { listening, ownListeners, policyPages } from './pages.ts'
import { healthPages, metricsPages } from '#lib/obs/pages.ts'
import { StandIns, type StandInsOptions } from './stand-ins.ts'

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
  /** of ports that are left to a kube-proxy, until it has them */
  readonly redirects: StandInsOptions['redirects']
  readonly listening: StandInsOptions['listening']
}

const PROXY_HEALTH = 'proxy-health'

export class HttpServers implements AsyncDisposable {
  readonly #options: HttpServersOptions
  readonly #proxy: ProxyHealth
  readonly #own: Listeners
  readonly #services: Listeners
  readonly #stop = new AbortController()
  #config: Config | undefined
  #isProxyThere = false
  /** the ports that clients know as kube-proxy's are not ours now */
  #areLeft = false
  /** what would be served at them */
  #ownWanted: ReadonlyMap<string, Listener> = new Map()
  #servicesWanted: ReadonlyMap<string, Listener> = new Map()
  /** one after the other */
  #leaving: Promise<void> = Promise.resolve()
  #makeMetrics: (() => Promise<Metrics>) | undefined
  #metrics: Promise<Pages> | undefined

  constructor(options: HttpServersOptions) {
    const { health, log, eligible } = options
    const listeners = (condition: string, isOneShare: boolean): Listeners =>
      new Listeners({ condition, isOneShare, clock: systemClock, health, log })
    this.#options = options
    this.#proxy = new ProxyHealth({ health, wall: () => systemClock.wall(), eligible })
    this.#own = listeners('ports.own', false)
    this.#services = listeners('ports.health-checks', true)
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
      [PROXY_HEALTH]: () => this.#proxy.nodePages,
    }
    this.#ownWanted = ownListeners(listening(options, this.#config), pages)
    this.#setOwn()
  }

  /** The node asks its peers about the tunnel: they learn of it here where the tunnel does not tell. */
  setProbes(probes: boolean): void {
    this.#proxy.probes = probes
  }

  setHealthChecks(checks: readonly HealthCheck[]): void {
    this.#servicesWanted = this.#proxy.listeners(checks)
    this.#setServices()
  }

  #setOwn(): void {
    this.#own.set(this.#areLeft ? without(this.#ownWanted, PROXY_HEALTH) : this.#ownWanted)
  }

  #setServices(): void {
    this.#services.set(this.#areLeft ? new Map() : this.#servicesWanted)
  }

  /** Takes away what an agent before has redirected. Takes effect soon. */
  begin(): void {
    const { log, redirects } = this.#options
    this.#leaving = redirects.end().then(
      () => undefined,
      (thrown: unknown) => {
        log.warn({ error: thrown }, 'ports.still-redirected')
      },
    )
  }

  /** A kube-proxy that is to run on this node has the ports that clients know as its. It asks for them as it starts; of
   * a service's, if it was refused, it does not ask again for half a minute or more. */
  setProxy(isThere: boolean): void {
    if (isThere === this.#isProxyThere) return
    this.#isProxyThere = isThere
    if (isThere && this.#held().size > 0) this.#leaving = this.#leaving.then(() => this.#handOver())
    else this.#leave(isThere)
  }

  #leave(areLeft: boolean): void {
    this.#areLeft = areLeft
    this.#setOwn()
    this.#setServices()
  }

  /** What kube-proxy serves too, and we serve now. */
  #held(): ReadonlyMap<string, Listener> {
    const isHeld = (name: string): boolean => this.#own.holds(name) || this.#services.holds(name)
    return new Map([...this.#proxyWanted()].filter(([name]) => isHeld(name)))
  }

  #proxyWanted(): ReadonlyMap<string, Listener> {
    const health = this.#ownWanted.get(PROXY_HEALTH)
    return new Map([...(health === undefined ? [] : [[PROXY_HEALTH, health] as const]), ...this.#servicesWanted])
  }

  /** The ports answer until kube-proxy has them, or we have them again. */
  async #handOver(): Promise<void> {
    await using standIns = new StandIns({ clock: systemClock, ...this.#options })
    if (this.#isProxyThere) await standIns.open(this.#held())
    if (!this.#isProxyThere) return
    this.#leave(true)
    await Promise.all([this.#own.settled(), this.#services.settled()])
    const wanted = (): ReadonlySet<number> => new Set([...this.#proxyWanted().values()].map(({ port }) => port))
    await standIns.watch({ wanted, signal: this.#stop.signal })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#leaving
    await this.#own[Symbol.asyncDispose]()
    await this.#services[Symbol.asyncDispose]()
  }
}

function without(listeners: ReadonlyMap<string, Listener>, name: string): ReadonlyMap<string, Listener> {
  return new Map([...listeners].filter(([one]) => one !== name))
}
