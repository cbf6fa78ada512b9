// SPDX-License-Identifier: Apache-2.0
/** The end of kube-proxy on this node: its rules go once our programs serve, if that is wanted.
 * Layer: agent/dataplane. */
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { findKubeProxy, proxyRulesText, removeKubeProxy, unservedOf, type ProxyRules } from './cleanup.ts'

export interface ProxyHandoverOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  /** true when everything that is wanted is in place, so that kube-proxy is not needed */
  readonly serves: () => boolean
  /** may the rules go; undefined: not known yet */
  readonly wanted: () => boolean | undefined
  /** a kube-proxy is to run on this node */
  readonly expected: () => boolean
  /** addresses of services that it has rules for once it serves */
  readonly addresses: () => readonly Addr[]
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
/** While it is waited for that a kube-proxy has written its rules. */
const AWAITED_MS = 1000

export class ProxyHandover {
  readonly #options: ProxyHandoverOptions
  /** what was to be done when last looked */
  #task: 'await' | 'keep' | 'remove' | undefined
  /** as last looked: "iptables-nft: nat 23 chains, 3 jumps" */
  #found: readonly string[] | undefined
  /** the kube-proxy that is to run has written its rules */
  #serves = false
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

  /** Where a kube-proxy is to run: it serves. Elsewhere: rules of one are on this node. undefined: not known yet */
  get isPresent(): boolean | undefined {
    return this.#found && (this.#task === 'await' ? this.#serves : this.#found.length > 0)
  }

  /** Does what is due. */
  async tick(): Promise<void> {
    const { clock, log, health, serves, wanted, expected } = this.#options
    const mayGo = wanted()
    if (mayGo === undefined || !serves()) return
    const task = expected() ? 'await' : mayGo ? 'remove' : 'keep'
    if (task !== this.#task) [this.#task, this.#lookAt, this.#removeAt, this.#returned, this.#serves] = [task, 0, 0, false, false]
    if (clock.now() < this.#lookAt) return
    this.#lookAt = clock.now() + LOOK_MS
    try {
      if (task !== 'remove') await this.#leave(task)
      else if (clock.now() < this.#removeAt) this.#judge(await this.#look())
      else await this.#remove()
    } catch (thrown) {
      log.warn({ error: thrown }, 'kube-proxy.detect-failed')
      health.fail(PROXY_RULES, errorText(thrown))
    }
  }

  async #look(): Promise<readonly ProxyRules[]> {
    const found = await findKubeProxy(this.#options.run)
    this.#found = found.map(proxyRulesText)
    return found
  }

  async #leave(task: 'await' | 'keep'): Promise<void> {
    const { clock, log, health } = this.#options
    const wasPresent = this.isPresent
    const found = await this.#look()
    this.#serves = task === 'await' && found.length > 0 && (this.#serves || (await this.#isServedBy(found)))
    const { isPresent } = this
    if (isPresent === true && wasPresent !== true) log.info({ rules: this.#found }, 'kube-proxy.kept')
    if (task === 'await' && isPresent !== true) this.#lookAt = clock.now() + AWAITED_MS
    // those of a kube-proxy that has just ended may be taken away by others
    else if (task === 'keep' && isPresent === true) this.#lookAt = clock.now() + SOON_MS
    health.pass(PROXY_RULES)
  }

  /** Families are written one after the other, and neither at once when kube-proxy starts. */
  async #isServedBy(found: readonly ProxyRules[]): Promise<boolean> {
    const { addresses, run } = this.#options
    return (await unservedOf(addresses(), found, run)).length === 0
  }

  async #remove(): Promise<void> {
    const { clock, log, health, run } = this.#options
    const removed = await removeKubeProxy(run)
    this.#found = []
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
