// SPDX-License-Identifier: Apache-2.0
/** Edits of an older installation, and what becomes of each. Layer: upgrade (pure). */
import type { Refusal } from '../refusal.ts'
import type { Raw } from '../stored/outcome.ts'

/** Where an object differs from what its version has installed. */
export interface Difference {
  /** "DaemonSet kube-system/netplane-node" */
  readonly resource: string
  readonly kind: string
  readonly name: string
  /** empty: the whole object. Names of fields, and "[key]" for an element of a list */
  readonly steps: readonly string[]
  /** "spec.template.spec.containers[netplane-node].env[FELIX_LOGSEVERITYSCREEN]" */
  readonly field: string
  /** undefined: the installed version has no such field */
  readonly base: unknown
  /** undefined: the object has it no more */
  readonly mine: unknown
  /** field managers that wrote it, sorted; empty: the object does not say */
  readonly managers: readonly string[]
}

/** Where this version says it. */
export type Destination = 'installation' | 'felix' | 'controllers'

export type EditOutcome =
  | {
      readonly kind: 'carried'
      readonly to: Destination
      /** below its spec */
      readonly path: readonly string[]
      readonly value: unknown
      /** the value is one of a list's elements */
      readonly isElement?: true
    }
  /** in force where it is already */
  | { readonly kind: 'kept'; readonly where: string }
  /** nothing here depends on it */
  | { readonly kind: 'left'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string; readonly remedy: string }

/** What an apply of this version's manifest does with the field of the old object. */
export type Applied = 'overwritten' | 'goes' | 'stays'

export interface Edit extends Difference {
  readonly outcome: EditOutcome
  readonly applied: Applied
}

export interface Edits {
  readonly edits: readonly Edit[]
  /** fields of an Installation's spec */
  readonly installation: Raw
  /** fields of FelixConfiguration `default` */
  readonly felix: Raw
  /** fields of ControllersConfiguration `default` */
  readonly controllers: Raw
  readonly refusals: readonly Refusal[]
}

export function carried(to: Destination, path: readonly string[], value: unknown): EditOutcome {
  return { kind: 'carried', to, path, value }
}

export function carriedElement(to: Destination, path: readonly string[], value: unknown): EditOutcome {
  return { kind: 'carried', to, path, value, isElement: true }
}

export function kept(where: string): EditOutcome {
  return { kind: 'kept', where }
}

export function left(reason: string): EditOutcome {
  return { kind: 'left', reason }
}

export function refused(reason: string, remedy: string): EditOutcome {
  return { kind: 'refused', reason, remedy }
}
