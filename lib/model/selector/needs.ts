// SPDX-License-Identifier: Apache-2.0
/** What labels must at least be like for a selector to hold: what it can be found by without trying it.
 * Layer: lib/model. */
import type { Selector } from './selector.ts'

/** Of one label; at least one of `present` and `absent` is true. */
export interface LabelNeed {
  readonly present: boolean
  readonly absent: boolean
  /** it must have one of these values; empty: the selector can never hold; undefined: any value will do */
  readonly values: ReadonlySet<string> | undefined
}

/** By label. A selector may need more than this says, never less. */
export type LabelNeeds = ReadonlyMap<string, LabelNeed>

/** The work is in proportion to the selector, whatever its parts are. */
export function needsOf(selector: Selector): LabelNeeds {
  return draftOf(selector)
}

interface Draft {
  readonly present: boolean
  readonly absent: boolean
  readonly values: Set<string> | undefined
}

/** Nobody else's: who has it may change it. */
type Drafts = Map<string, Draft>

const PRESENT: Draft = { present: true, absent: false, values: undefined }
const ABSENT: Draft = { present: false, absent: true, values: undefined }

function draftOf(selector: Selector): Drafts {
  switch (selector.op) {
    case 'and':
      return ofAll(selector.of)
    case 'or':
      return ofAny(selector.of)
    default: {
      const all: Drafts = new Map()
      addLeaf(all, selector)
      return all
    }
  }
}

/** To those of other parts that must hold as well. */
function addLeaf(all: Drafts, leaf: Selector): void {
  switch (leaf.op) {
    case 'equals':
      add(all, leaf.label, { ...PRESENT, values: new Set([leaf.value]) })
      return
    case 'in':
      add(all, leaf.label, { ...PRESENT, values: new Set(leaf.values) })
      return
    case 'has':
    case 'contains':
    case 'starts':
    case 'ends':
      add(all, leaf.label, PRESENT)
      return
    case 'not':
      if (leaf.of.op === 'has') add(all, leaf.of.label, ABSENT)
      return
    default:
  }
}

function add(all: Drafts, label: string, need: Draft): void {
  const known = all.get(label)
  all.set(label, known === undefined ? need : sharpened(known, need))
}

function ofAll(parts: readonly Selector[]): Drafts {
  const all: Drafts = new Map()
  for (const part of parts) {
    // a map for each of many leaves would cost more than all else
    if (part.op === 'and' || part.op === 'or') for (const [label, need] of draftOf(part)) add(all, label, need)
    else addLeaf(all, part)
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
