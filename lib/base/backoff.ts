// SPDX-License-Identifier: Apache-2.0
/** How long to wait before trying again. Layer: lib/base (pure). */

export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
  /** growth per attempt; 2 when not given */
  readonly factor?: number
}

/** Delay in ms before attempt `attempt` (0 is the first retry). `jitter` in [0, 1) takes off up to a quarter, so
 * that many do not retry at once. */
export function backoffMs(backoff: Backoff, attempt: number, jitter = 0): number {
  const grown = backoff.firstMs * (backoff.factor ?? 2) ** Math.max(0, attempt)
  return Math.min(backoff.maxMs, grown) * (1 - jitter / 4)
}
