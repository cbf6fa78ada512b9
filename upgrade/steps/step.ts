// SPDX-License-Identifier: Apache-2.0
/** One step of an upgrade. Layer: upgrade.
 *
 * A step is found done by looking at the cluster, not by a record: a run that was cut off anywhere goes on with the
 * first step that is not done. */

export interface Step {
  /** "import": the same in text, JSON and the record */
  readonly name: string
  /** what it does, with what was found: "writes 42 objects as netplane.io/v3" */
  readonly about: string
  /** what a person would type instead; empty: netplanectl alone does it */
  readonly commands: readonly string[]
  /** that nodes pull for it: "registry.example.com/netplane:3.31.5" */
  readonly images?: readonly string[]
  /** Before and after: how it stands. */
  readonly look: (signal: AbortSignal) => Promise<StepState>
  /** Does what is left. May be cut off at any point, and be called again. */
  readonly run: (signal: AbortSignal, tell: Tell) => Promise<void>
}

export interface StepState {
  readonly isDone: boolean
  /** what is in the way, a sentence each: it is not run, or has not come to its end */
  readonly problems: readonly string[]
  /** what is still to come, a sentence each: after a run, why it is not done */
  readonly left?: readonly string[]
  /** what it has found, a sentence that is told also where there is nothing to do */
  readonly found?: string
}

/** A sentence of what goes on: "4 of 6 nodes run v3.31.5". */
export type Tell = (text: string) => void
