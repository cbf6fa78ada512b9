// SPDX-License-Identifier: Apache-2.0
/** Whether the API server can be reached, and getting there again: one attempt at a time for all callers.
 * Layer: lib/api. */
import { backoffMs, type Backoff } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { UnreachableError } from '../errors.ts'
import type { Transport } from '../connection/transport.ts'

export interface Lost {
  readonly reason: string
  /** ms since 1970 */
  readonly since: number
  /** there are connections, and none lasts, or not for this */
  readonly brief?: true
}

export interface ReconnectOptions {
  readonly transport: Pick<Transport, 'connect' | 'connected' | 'drop'>
  readonly clock: Clock
  readonly backoff: Backoff
  readonly onChange: () => void
}

/** A connection that ends sooner is another attempt that failed: a server that takes connections need not serve. */
const LASTING_MS = 5000
/** As long as watches last: then they begin again in any case. */
const STAY_MS = 600_000

export class Reconnect {
  readonly #options: ReconnectOptions
  #restoredAt = -Infinity
  /** connections in a row that did not last, and since when that is so */
  #brief = 0
  #since = 0
  #lost: Lost | undefined
  #restoring: Promise<void> | undefined
  /** by address */
  readonly #leftAt = new Map<string, number>()

  constructor(options: ReconnectOptions) {
    this.#options = options
  }

  /** Why it cannot be reached, and since when; undefined while no caller has found so. */
  get lost(): Lost | undefined {
    return this.#lost
  }

  /** Resolves once there is a connection; `reason`: why the last one is none any more. Rejects with the signal's
   * reason; all callers have the same signal. */
  restored(reason: string, signal: AbortSignal): Promise<void> {
    this.#restoring ??= this.#restore(reason, signal).finally(() => {
      this.#restoring = undefined
    })
    return this.#restoring
  }

  /** The server of this connection answers badly: another one behind the name, or the balancer, may do better.
   * An address is left once in a while only: what all of them refuse is no reason to begin all watches again and
   * again. */
  async leave(connection: Transport['connected'], reason: string): Promise<void> {
    const { transport, clock } = this.#options
    if (connection === undefined || connection !== transport.connected) return
    const { address } = connection
    if (clock.now() - (this.#leftAt.get(address) ?? -Infinity) < STAY_MS) return
    this.#leftAt.set(address, clock.now())
    await transport.drop(new UnreachableError(reason))
  }

  async #restore(reason: string, signal: AbortSignal): Promise<void> {
    const { transport, clock, backoff } = this.#options
    this.#brief = clock.now() - this.#restoredAt < LASTING_MS ? this.#brief + 1 : 0
    if (this.#brief === 0) this.#since = clock.wall()
    // one that is cut may be followed by another that is
    if (this.#brief > 1) this.#set({ reason, since: this.#since, brief: true })
    for (let attempt = this.#brief; ; attempt++) {
      if (attempt > 0) await clock.sleep(backoffMs(backoff, attempt - 1, Math.random()), signal)
      try {
        await transport.connect(signal)
        this.#restoredAt = clock.now()
        this.#set(undefined)
        return
      } catch (thrown) {
        signal.throwIfAborted()
        this.#set({ reason: errorText(thrown), since: this.#since })
      }
    }
  }

  #set(lost: Lost | undefined): void {
    if (this.#lost === undefined && lost === undefined) return
    this.#lost = lost
    this.#options.onChange()
  }
}
