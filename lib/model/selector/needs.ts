// SPDX-License-Identifier: Apache-2.0
/** What labels must at least be like for a selector to hold: what it can be found by without trying it.
 * Layer: lib/model. */
import type { Selector } from './selector.ts'

/** Of one label; at least one of `present` and `absent` is true. */
export interface LabelNeed {
  readonly present: boolean
  readonly absent: boolean
  /** it must have one of these values; empty: the selector can never hold; undefined: any value will do */
  readonly values: readonly string[] | undefined
}

/** By label. A selector may need more than this says, never less. */
export type LabelNeeds = ReadonlyMap<string, LabelNeed>

/** The work is in proportion to the selector, whatever its parts are. */
export function needsOf(selector: Selector): LabelNeeds {
  return new Map([...draftOf(selector)].map(([label, { values, ...need }]) => [label, { ...need, values: values && [...values] }]))
}

interface Draft {
  readonly present: boolean
  readonly absent: boolean
  readonly values: Set<string> | undefined
}

/** Nobody else's: who has it may change it. */
type Drafts = Map<string, Draft>

function draftOf(selector: Selector): Drafts {
  switch (selector.op) {
    case 'equals':
      return one(selector.label, { present: true, absent: false, values: new Set([selector.value]) })
    case 'in':
      return one(selector.label, { present: true, absent: false, values: new Set(selector.values) })
    case 'has':
    case 'contains':
    case 'starts':
    case 'ends':
      return one(selector.label, { present: true, absent: false, values: undefined })
    case 'not':
      return selector.of.op === 'has'
        ? one(selector.of.label, { present: false, absent: true, values: undefined })
        : new Map<string, Draft>()
    case 'and':
      return ofAll(selector.of)
    case 'or':
      return ofAny(selector.of)
    default:
      return new Map<string, Draft>()
  }
}

function one(label: string, need: Draft): Drafts {
  return new Map([[label, need]])
}

function ofAll(parts: readonly Selector[]): Drafts {
  const all: Drafts = new Map()
  for (const part of parts)
    for (const [label, need] of draftOf(part)) {
      const known = all.get(label)
      all.set(label, known === undefined ? need : sharpened(known, need))
    }
  return all
}

function sharpened(a: Draft, b: Draft): Draft {
  const values = a.values === undefined ? b.values : b.values === undefined ? a.values : intersection(a.values, b.values)
  return { present: a.present || b.present, absent: a.absent || b.absent, values }
}

function intersection(a: ReadonlySet<string>, b: ReadonlySet<string>): Set<string> {
  const [few, many] = a.size < b.size ? [a, b] : [b, a]
  return new Set([...few].filter((value) => many.has(value)))
}

/** What no part needs is asked of none of those after it. */
function ofAny([first, ...others]: readonly Selector[]): Drafts {
  const any = first === undefined ? new Map<string, Draft>() : draftOf(first)
  for (const part of others) {
    if (any.size === 0) break
    const needs = draftOf(part)
    for (const [label, known] of any) {
      const need = needs.get(label)
      const either = need && eitherOf(known, need)
      if (either === undefined) any.delete(label)
      else any.set(label, either)
    }
  }
  return any
}

/** Undefined: anything will do. Adds to the values of `a`. */
function eitherOf(a: Draft, b: Draft): Draft | undefined {
  const [present, absent] = [a.present && b.present, a.absent && b.absent]
  if (!present && !absent) return undefined
  if (!present || a.values === undefined || b.values === undefined) return { present, absent, values: undefined }
  for (const value of b.values) a.values.add(value)
  return { present, absent, values: a.values }
}
