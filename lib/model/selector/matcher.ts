// SPDX-License-Identifier: Apache-2.0
/** Selectors made ready to be asked of many labels: the cost is that of the smaller number, of labels or of
 * parts.
 * Layer: lib/model. */
import { NAMESPACE_LABEL, NO_LABELS } from '../labels.ts'
import type { Labels } from '../labels.ts'
import { selects } from './selector.ts'
import type { Selector } from './selector.ts'

export type Matcher = (labels: Labels) => boolean

/** Says of all labels what `selects` says of them. */
export function matcherOf(selector: Selector): Matcher {
  switch (selector.op) {
    case 'not': {
      const inner = matcherOf(selector.of)
      return (labels) => !inner(labels)
    }
    case 'and':
      return joined(selector.of, false)
    case 'or':
      return joined(selector.of, true)
    case 'in':
    case 'not-in':
      return joined([selector], false)
    default:
      return (labels) => selects(selector, labels)
  }
}

/** `decides`: what one part alone decides, false of all that must hold and true of those of which one must. */
function joined(parts: readonly Selector[], decides: boolean): Matcher {
  const byLabel = new Map<string, LabelParts>()
  const others: Matcher[] = []
  for (const part of parts) {
    const values = valuesOf(part)
    if (values === undefined) {
      others.push(matcherOf(part))
      continue
    }
    const known = byLabel.get(values.label)
    const about = known ?? new LabelParts(decides)
    if (known === undefined) byLabel.set(values.label, about)
    about.add(values, selects(part, NO_LABELS))
  }
  /** labels that decide by not being there */
  let missed = 0
  for (const { decidesAbsent } of byLabel.values()) if (decidesAbsent) missed++
  return (labels) => {
    let present = 0
    const isDecided = (about: LabelParts | undefined, value: string | undefined): boolean => {
      if (about === undefined || value === undefined) return false
      if (about.decidesAbsent) present++
      return about.decidesBy(value)
    }
    // the smaller of the two is walked
    if (byLabel.size < labels.size) {
      for (const [label, about] of byLabel) if (isDecided(about, labels.get(label))) return decides
    } else for (const [label, value] of labels) if (isDecided(byLabel.get(label), value)) return decides
    if (present < missed) return decides
    return others.some((part) => part(labels) === decides) ? decides : !decides
  }
}

/** A part that asks for a label's value: where the label is there, it holds if the value is one of these, or if it is
 * none of them. */
interface ValuePart {
  readonly label: string
  readonly values: readonly string[]
  readonly isWithin: boolean
}

/** Undefined: it asks for something else. */
function valuesOf(part: Selector): ValuePart | undefined {
  switch (part.op) {
    case 'equals':
    case 'differs':
      return { label: part.label, values: [part.value], isWithin: part.op === 'equals' }
    case 'in':
    case 'not-in':
      return { label: part.label, values: part.values, isWithin: part.op === 'in' }
    case 'has':
      return { label: part.label, values: [], isWithin: false }
    case 'global':
      return { label: NAMESPACE_LABEL, values: [], isWithin: true }
    case 'not': {
      const inner = valuesOf(part.of)
      return inner && { ...inner, isWithin: !inner.isWithin }
    }
    default:
      return undefined
  }
}

const NO_VALUES: ReadonlySet<string> = new Set()

/** All parts about one label. */
class LabelParts {
  decidesAbsent = false
  readonly #decides: boolean
  /** that decide */
  #deciding: Set<string> | undefined
  /** all but these decide */
  #undecided: ReadonlySet<string> | undefined

  constructor(decides: boolean) {
    this.#decides = decides
  }

  add({ values, isWithin }: ValuePart, holdsAbsent: boolean): void {
    this.decidesAbsent ||= holdsAbsent === this.#decides
    if (isWithin !== this.#decides) this.#undecided = intersection(this.#undecided, values)
    else if (values.length > 0) this.#deciding = union(this.#deciding, values)
  }

  /** Of a label that is there. */
  decidesBy(value: string): boolean {
    return this.#deciding?.has(value) === true || this.#undecided?.has(value) === false
  }
}

function union(known: Set<string> | undefined, values: readonly string[]): Set<string> {
  if (known === undefined) return new Set(values)
  for (const value of values) known.add(value)
  return known
}

function intersection(known: ReadonlySet<string> | undefined, values: readonly string[]): ReadonlySet<string> {
  if (values.length === 0) return NO_VALUES
  return new Set(known === undefined ? values : values.filter((value) => known.has(value)))
}
