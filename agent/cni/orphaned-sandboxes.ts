// SPDX-License-Identifier: Apache-2.0
/** Sandboxes that no runtime will ever take away: it would have, had it known of them. Layer: agent/cni (pure data
 * structure). */

export interface Seen {
  readonly containerId: string
  /** the file of its network namespace is there */
  readonly hasNetns: boolean
  /** some source has a pod of its name: a pod of a StatefulSet that comes again has another uid */
  readonly hasPod: boolean
}

/** A runtime may forget a sandbox for a while, or restart: but it needs less time than this. */
const WITHOUT_NETNS_MS = 60_000
const WITHOUT_POD_MS = 15 * 60_000

export class OrphanedSandboxes {
  /** since when it is so */
  readonly #since = new Map<string, { readonly netns: number | undefined; readonly pod: number | undefined }>()

  /** Those that have been so for too long. `now`: ms of a clock that never goes back. */
  orphans(all: readonly Seen[], now: number): readonly string[] {
    const ids = new Set(all.map(({ containerId }) => containerId))
    for (const id of this.#since.keys()) if (!ids.has(id)) this.#since.delete(id)
    return all.flatMap(({ containerId, hasNetns, hasPod }) => {
      const before = this.#since.get(containerId)
      const since = { netns: hasNetns ? undefined : (before?.netns ?? now), pod: hasPod ? undefined : (before?.pod ?? now) }
      this.#since.set(containerId, since)
      const isLong = (at: number | undefined, ms: number): boolean => at !== undefined && now - at >= ms
      return isLong(since.netns, WITHOUT_NETNS_MS) || isLong(since.pod, WITHOUT_POD_MS) ? [containerId] : []
    })
  }
}
