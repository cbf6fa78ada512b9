// SPDX-License-Identifier: Apache-2.0
/** The end of kube-proxy on this node: its rules go once our programs serve, if that is wanted.
 * Layer: agent/dataplane. */
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { findKubeProxy, proxyRulesText, removeKubeProxy, type ProxyRules } from './cleanup.ts'

export interface ProxyHandoverOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  /** true when everything that is wanted is in place, so that kube-proxy is not needed */
  readonly serves: () => boolean
  /** may the rules go; undefined: not known yet */
  readonly wanted: () => boolean | undefined
  readonly run?: RunTool | undefined
}

/** Condition: kube-proxy's rules are as the settings want them. */
export const PROXY_RULES = 'kube-proxy.rules'

const TICK_MS = 1000
/** In this time a kube-proxy that still runs has put its rules back: it looks every 30 s. */
const SOON_MS = 60_000
const LOOK_MS = 600_000
/** Not sooner again: a kube-proxy that runs is for its administrator to stop. Once it has stopped, what it left
 * goes. */
const REMOVE_MS = 3_600_000

export class ProxyHandover {
  readonly #options: ProxyHandoverOptions
  /** what was wanted when last looked */
  #wanted: boolean | undefined
  #lookAt = 0
  #removeAt = 0
  /** they were there again, and that was said */
  #returned = false

  constructor(options: ProxyHandoverOptions) {
    this.#options = options
  }

  /** Until the signal aborts; what has begun is finished. */
  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Does what is due. */
  async tick(): Promise<void> {
    const { clock, log, health, serves, wanted } = this.#options
    const now = wanted()
    if (now === undefined || !serves()) return
    if (now !== this.#wanted) [this.#wanted, this.#lookAt, this.#removeAt, this.#returned] = [now, 0, 0, false]
    if (clock.now() < this.#lookAt) return
    this.#lookAt = now ? clock.now() + LOOK_MS : Infinity
    try {
      if (!now) await this.#leave()
      else if (clock.now() < this.#removeAt) this.#judge(await findKubeProxy(this.#options.run))
      else await this.#remove()
    } catch (thrown) {
      log.warn({ error: thrown }, 'kube-proxy.detect-failed')
      health.fail(PROXY_RULES, errorText(thrown))
    }
  }

  async #leave(): Promise<void> {
    const found = await findKubeProxy(this.#options.run)
    if (found.length > 0) this.#options.log.info({ rules: found.map(proxyRulesText) }, 'kube-proxy.kept')
    this.#options.health.pass(PROXY_RULES)
  }

  async #remove(): Promise<void> {
    const { clock, log, health, run } = this.#options
    const removed = await removeKubeProxy(run)
    if (removed.length === 0) {
      this.#judge(removed)
      return
    }
    this.#removeAt = clock.now() + REMOVE_MS
    this.#lookAt = clock.now() + SOON_MS
    log.info({ rules: removed.map(proxyRulesText) }, 'kube-proxy.removed')
    if (!this.#returned) health.pass(PROXY_RULES)
  }

  #judge(found: readonly ProxyRules[]): void {
    const { log, health } = this.#options
    if (found.length === 0) {
      if (this.#returned) log.info({}, 'kube-proxy.cleared')
      this.#returned = false
      health.pass(PROXY_RULES)
      return
    }
    health.fail(PROXY_RULES, 'the rules of kube-proxy are back: stop it, or set bpfProxyIptablesCleanupEnabled to false')
    if (!this.#returned) log.warn({ rules: found.map(proxyRulesText) }, 'kube-proxy.restored')
    this.#returned = true
  }
}
