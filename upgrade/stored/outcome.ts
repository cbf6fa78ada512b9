// SPDX-License-Identifier: Apache-2.0
/** What becomes of a stored object. Layer: upgrade (pure). */
import { GROUP, VERSION } from '#lib/kube/resources.ts'

/** A JSON object. */
export type Raw = Readonly<Record<string, unknown>>

export const STORED_API_VERSION = `crd.${GROUP}/v1`
export const API_VERSION = `${GROUP}/${VERSION}`

/** An object as it is stored. */
export interface StoredRef {
  readonly kind: string
  /** empty: it has none */
  readonly namespace: string
  readonly name: string
  /** empty: it says none */
  readonly uid: string
}

/** As the API server takes it. */
export interface V3Object {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Raw & { readonly name: string; readonly namespace?: string }
  readonly spec: unknown
}

/** An owner of ours: what it is now; its new UID is to be looked up when it is there. */
export interface Owner {
  readonly kind: string
  readonly name: string
  readonly controller: boolean
  readonly blockOwnerDeletion: boolean
}

/** What is not as it was stored. */
export interface Difference {
  /** "spec.ingress[0].action" */
  readonly field: string
  /** undefined: it was missing */
  readonly before: unknown
  /** undefined: it is left out */
  readonly after: unknown
  readonly why: string
}

/** Why an object cannot be had here. */
export interface Fault {
  readonly field: string
  readonly value: unknown
  readonly reason: string
}

export type Outcome =
  | { readonly kind: 'carried'; readonly of: StoredRef; readonly object: V3Object; readonly owners: readonly Owner[] }
  | {
      readonly kind: 'changed'
      /** undefined: nothing is stored, and it is made */
      readonly of: StoredRef | undefined
      readonly object: V3Object
      readonly owners: readonly Owner[]
      readonly differences: readonly Difference[]
    }
  /** nothing of it is in force until an administrator has decided */
  | { readonly kind: 'refused'; readonly of: StoredRef; readonly faults: readonly Fault[] }
  /** it is not needed here */
  | { readonly kind: 'left'; readonly of: StoredRef; readonly reason: string }

/** "NetworkPolicy shop/default.web" */
export function storedText({ kind, namespace, name }: StoredRef): string {
  const text = `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`.trim()
  return text === '' ? 'an object without a kind' : text
}

/** One line for each thing that is to be read. */
export function outcomeLines(outcome: Outcome): readonly string[] {
  const head = outcome.of === undefined ? '' : storedText(outcome.of)
  switch (outcome.kind) {
    case 'carried':
      return [`carried ${head} as ${nameText(outcome.object)}`]
    case 'changed':
      return [
        outcome.of === undefined
          ? `made ${outcome.object.kind} ${nameText(outcome.object)}`
          : `changed ${head} as ${nameText(outcome.object)}`,
        ...outcome.differences.map(differenceText),
      ]
    case 'refused':
      return [
        `refused ${head}`,
        ...outcome.faults.map(
          ({ field, value, reason }) => `  ${[field, valueText(value), reason].filter((part) => part !== '').join(': ')}`,
        ),
      ]
    case 'left':
      return [`left ${head}: ${outcome.reason}`]
  }
}

function differenceText({ field, before, after, why }: Difference): string {
  return `  ${field}: ${valueText(before)} → ${valueText(after)}: ${why}`
}

function nameText({ metadata: { namespace, name } }: V3Object): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

function valueText(value: unknown): string {
  return value === undefined ? '–' : JSON.stringify(value)
}
