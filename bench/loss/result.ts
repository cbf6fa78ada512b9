// SPDX-License-Identifier: Apache-2.0
/** What counting losses ends in. Layer: bench (pure). */

export interface Losses {
  /** packets of what was established, SYNs */
  readonly lost: number
  /** new connections without an answer, refused or otherwise */
  readonly refused: number
  /** datagrams that the senders' sockets dropped, packets that the processors' queues did: no fault of the data
   * plane */
  readonly socketDrops: number
  readonly softnetDrops: number
}

export interface LossFigure {
  /** as in latest.json */
  readonly id: string
  readonly runs: number
  readonly fault: Losses
  /** of what was removed, by its name: what that cost, and ms until it was there again */
  readonly removed?: Readonly<Record<string, Losses & { readonly backMs: number }>>
  /** the same without the fault, for as long */
  readonly control: Losses
}
