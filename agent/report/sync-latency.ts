// SPDX-License-Identifier: Apache-2.0
/** How long it takes from what changed a service's endpoints until this node's data plane has it. Layer: agent. */
import type { ObjectChange } from '#lib/model/snapshot.ts'

export interface SyncLatencyOptions {
  /** ms since 1970 */
  readonly wall: () => number
  readonly observe: (seconds: number) => void
}

/** A change that is superseded before it is applied counts as well: clients that wait for it wait as long. */
export class SyncLatency {
  readonly #options: SyncLatencyOptions
  readonly #since = new Set<number>()

  constructor(options: SyncLatencyOptions) {
    this.#options = options
  }

  note(changes: readonly ObjectChange[]): void {
    for (const change of changes) {
      if (change.kind !== 'EndpointSlice') continue
      const triggered = change.after?.triggered
      if (triggered !== undefined && triggered !== change.before?.triggered) this.#since.add(triggered)
    }
  }

  /** What was noted is in the kernel. */
  settled(): void {
    const now = this.#options.wall()
    // clocks of other machines may be ahead
    for (const since of this.#since) this.#options.observe(Math.max(0, now - since) / 1000)
    this.#since.clear()
  }
}
