// SPDX-License-Identifier: Apache-2.0
/** What the apply loop knows of each thing it keeps right. Layer: agent/dataplane. */
import { errorText } from '#lib/base/errors.ts'

/** One item that could not be brought to what is wanted; it stays pending. */
export interface Failure {
  /** "npl0123456789a/ingress", "10.1.0.0/24" */
  readonly item: string
  readonly reason: string
  readonly cause: unknown
}

export interface Outcome {
  /** changes made in the kernel */
  readonly done: number
  readonly failures: readonly Failure[]
  /** what is left waits for another part that has failed */
  readonly held?: boolean
  /** nothing has failed here, but what needs this part has to wait */
  readonly undone?: boolean
}

/** One direction of one kind of kernel state: writing what is missing, or taking away what is too much. */
export interface ReconcileStep {
  readonly name: string
  /** is there anything to do, or to look at */
  pending(): boolean
  apply(): Outcome
}

export const NOTHING_DONE: Outcome = { done: 0, failures: [] }

export function failure(item: string, cause: unknown): Failure {
  return { item, reason: errorText(cause), cause }
}
