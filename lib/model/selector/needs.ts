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

const NOTHING: LabelNeeds = new Map()

export function needsOf(selector: Selector): LabelNeeds {
  switch (selector.op) {
    case 'equals':
      return one(selector.label, { present: true, absent: false, values: [selector.value] })
    case 'in':
      return one(selector.label, { present: true, absent: false, values: selector.values })
    case 'has':
    case 'contains':
    case 'starts':
    case 'ends':
      return one(selector.label, { present: true, absent: false, values: undefined })
    case 'not':
      return selector.of.op === 'has' ? one(selector.of.label, { present: false, absent: true, values: undefined }) : NOTHING
    case 'and':
      return selector.of.map(needsOf).reduce(both)
    case 'or':
      return selector.of.map(needsOf).reduce(either)
    default:
      return NOTHING
  }
}

function one(label: string, need: LabelNeed): LabelNeeds {
  return new Map([[label, need]])
}

function both(a: LabelNeeds, b: LabelNeeds): LabelNeeds {
  const result = new Map(a)
  for (const [label, need] of b) {
    const other = a.get(label)
    result.set(label, other === undefined ? need : sharpened(other, need))
  }
  return result
}

function sharpened(a: LabelNeed, b: LabelNeed): LabelNeed {
  const values = a.values === undefined ? b.values : b.values === undefined ? a.values : intersection(a.values, b.values)
  return { present: a.present || b.present, absent: a.absent || b.absent, values }
}

function intersection(a: readonly string[], b: readonly string[]): readonly string[] {
  return a.filter((value) => b.includes(value))
}

function either(a: LabelNeeds, b: LabelNeeds): LabelNeeds {
  const result = new Map<string, LabelNeed>()
  for (const [label, need] of a) {
    const other = b.get(label)
    if (other === undefined) continue
    const present = need.present && other.present
    const absent = need.absent && other.absent
    const values = need.values === undefined || other.values === undefined ? undefined : [...new Set([...need.values, ...other.values])]
    if (present || absent) result.set(label, { present, absent, values: present ? values : undefined })
  }
  return result
}
