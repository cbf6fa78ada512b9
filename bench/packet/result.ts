// SPDX-License-Identifier: Apache-2.0
/** What measuring packets ends in. Layer: bench (pure). */

/** ns a packet, hooks added up. */
export interface PacketFigure {
  readonly id: string
  readonly note: string
  /** least program minus least baseline */
  readonly net: number
  /** of the rounds' differences */
  readonly median: number
  /** of new flows: the median of the rounds but the first, which alone has a fresh table */
  readonly used?: number
  /** nine of ten rounds were at or below this */
  readonly p90: number
  readonly baseline: number
  readonly hooks: readonly HookFigure[]
}

export interface HookFigure {
  readonly program: string
  readonly net: number
}
