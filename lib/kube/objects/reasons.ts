// SPDX-License-Identifier: Apache-2.0
/** What a reason of conditions and events means to its reader. Layer: lib/kube. */

export interface ReasonText {
  /** where it is found, as pages have it: "`network`", "event of a Node" */
  readonly at: string
  readonly meaning: string
  /** empty: nothing is to be done */
  readonly remedy: string
}

/** By reason. */
export type ReasonTexts = Readonly<Record<string, ReasonText>>
