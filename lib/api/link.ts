// SPDX-License-Identifier: Apache-2.0
/** Whether the API server can be reached, and getting there again: one attempt at a time for all who wait. Layer: lib/api. */
import { backoffMs, type Backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { Transport } from './transport.ts'

export interface Lost {
  readonly reason: string
  /** ms since 1970 */
  readonly since: number
}

export interface LinkOptions {
  readonly transport: Pick<Transport, 'connect'>
  readonly clock: Clock
  readonly backoff: Backoff
  readonly onChange: () => void
}

export class Link {
  readonly #options: LinkOptions
  #lost: Lost | undefined
  #restoring: Promise<void> | undefined

  constructor(options: LinkOptions) {
    this.#options = options
  }

  /** Why it cannot be reached, and since when; undefined while nobody has found so. */
  get lost(): Lost | undefined {
    return this.#lost
  }

  /** Resolves once there is a connection. Rejects with the signal's reason; all callers have the same signal. */
  restored(signal: AbortSignal): Promise<void> {
    this.#restoring ??= this.#restore(signal).finally(() => {
      this.#restoring = undefined
    })
    return this.#restoring
  }

  async #restore(signal: AbortSignal): Promise<void> {
    const { transport, clock, backoff } = this.#options
    const since = clock.wall()
    for (let attempt = 0; ; attempt++) {
      if (attempt > 0) await clock.sleep(backoffMs(backoff, attempt - 1, Math.random()), signal)
      try {
        await transport.connect(signal)
        this.#set(undefined)
        return
      } catch (thrown) {
        signal.throwIfAborted()
        this.#set({ reason: errorText(thrown), since })
      }
    }
  }

  #set(lost: Lost | undefined): void {
    if (this.#lost === undefined && lost === undefined) return
    this.#lost = lost
    this.#options.onChange()
  }
}
