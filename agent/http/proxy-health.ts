// SPDX-License-Identifier: Apache-2.0
/** What load balancers outside the cluster ask: is this node's proxy at work, and has a service a local endpoint. Pages
 * as kube-proxy has them. Layer: agent. */
import type { Health } from '#lib/obs/health.ts'
import type { Page, Pages } from '#lib/obs/http.ts'
import type { HealthCheck } from '../compile/desired.ts'
import { conditionOf } from '../dataplane/reconcile/reconciler.ts'
import { NODE_ADDRESS } from '../report/own-node.ts'
import type { Listener } from './listeners.ts'

export interface ProxyHealthOptions {
  readonly health: Health
  /** ms of the wall clock */
  readonly wall: () => number
  /** false while the node is being taken away: new connections should go elsewhere */
  readonly eligible: () => boolean
}

/** Condition: the other nodes have heard where this one is. */
export const ANNOUNCED = 'network.announced'
/** A hiccup must not send a cluster's traffic elsewhere: programs forward without the agent. */
const GRACE_MS = 60_000
/** Without these, services are not as they should be. What fails for one pod is no reason to empty the node. */
const MATTERS = new Set([
  'kernel',
  'sources.synced',
  // they drop what comes from an address that they do not know
  ANNOUNCED,
  // without one, backends of other nodes cannot be reached
  NODE_ADDRESS,
  ...['applied', 'programs', 'read-back', 'frontends', 'backends', 'live'].map(conditionOf),
])
/** Of this node's pages, while its agent asks its peers whether the tunnel's packets arrive. */
export const PROBES_HEADER = 'netplane-tunnel-probes'
const JSON_TYPE = 'application/json'
const NO_SNIFF = { 'x-content-type-options': 'nosniff' }

export class ProxyHealth {
  readonly #options: ProxyHealthOptions
  /** see {@link PROBES_HEADER} */
  probes = false
  #lastHealthy: number
  #checks: ReadonlyMap<string, HealthCheck> = new Map()

  constructor(options: ProxyHealthOptions) {
    this.#options = options
    this.#lastHealthy = options.wall()
  }

  /** is the data plane kept as wanted */
  get healthy(): boolean {
    return this.#options.health.steady(MATTERS, GRACE_MS)
  }

  /** For the node as a whole: /healthz says whether it should get new connections, /livez whether the proxy works. */
  get nodePages(): Pages {
    return {
      '/healthz': () => {
        const nodeEligible = this.#options.eligible()
        return this.#nodePage(nodeEligible, { nodeEligible })
      },
      '/livez': () => this.#nodePage(true, {}),
    }
  }

  /** The servers of these services; what they answer follows each call. */
  listeners(checks: readonly HealthCheck[]): Map<string, Listener> {
    this.#checks = new Map(checks.map((check) => [`health-check.${check.namespace}/${check.name}`, check]))
    const pages = (name: string): Pages => ({ '*': () => this.#servicePage(this.#checks.get(name)) })
    return new Map([...this.#checks].map(([name, { port }]) => [name, { host: undefined, port, pages: () => pages(name) }]))
  }

  #nodePage(eligible: boolean, fields: Readonly<Record<string, unknown>>): Page {
    const { healthy } = this
    const now = this.#options.wall()
    if (healthy) this.#lastHealthy = now
    const body = { lastUpdated: stamp(this.#lastHealthy), currentTime: stamp(now), healthy, ...fields }
    return page(healthy && eligible, body, { ...NO_SNIFF, ...(this.probes ? { [PROBES_HEADER]: '1' } : {}) })
  }

  #servicePage(check: HealthCheck | undefined): Page {
    const { healthy } = this
    const [namespace, name, localEndpoints] = [check?.namespace ?? '', check?.name ?? '', check?.localReady ?? 0]
    const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy: healthy }
    return page(healthy && localEndpoints > 0, body, { ...NO_SNIFF, 'x-load-balancing-endpoint-weight': String(localEndpoints) })
  }
}

function page(good: boolean, body: object, headers: Readonly<Record<string, string>>): Page {
  return { status: good ? 200 : 503, type: JSON_TYPE, body: `${JSON.stringify(body)}\n`, headers }
}

function stamp(ms: number): string {
  return new Date(ms).toISOString()
}
