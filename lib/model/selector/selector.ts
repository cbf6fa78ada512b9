// SPDX-License-Identifier: Apache-2.0
/** Label selectors as a tree: what policies and rules say of endpoints, and whether labels fit. Layer: lib/model. */
import { unreachable } from '../../base/result.ts'
import { NAMESPACE_LABEL } from '../labels.ts'
import type { Labels } from '../labels.ts'

/** Those that speak of a value hold only where the label is there, but `differs` and `not-in` also where it is
 * absent. */
export type Selector =
  | { readonly op: 'all' }
  | { readonly op: 'none' }
  /** true for endpoints and sets that belong to no namespace */
  | { readonly op: 'global' }
  | { readonly op: 'has'; readonly label: string }
  | { readonly op: 'equals' | 'differs' | 'contains' | 'starts' | 'ends'; readonly label: string; readonly value: string }
  /** values sorted, each once */
  | { readonly op: 'in' | 'not-in'; readonly label: string; readonly values: readonly string[] }
  | { readonly op: 'not'; readonly of: Selector }
  /** at least two */
  | { readonly op: 'and' | 'or'; readonly of: readonly Selector[] }

export const ALL: Selector = Object.freeze({ op: 'all' })
export const NONE_AT_ALL: Selector = Object.freeze({ op: 'none' })

export function selects(selector: Selector, labels: Labels): boolean {
  switch (selector.op) {
    case 'all':
      return true
    case 'none':
      return false
    case 'global':
      return !labels.has(NAMESPACE_LABEL)
    case 'has':
      return labels.has(selector.label)
    case 'equals':
      return labels.get(selector.label) === selector.value
    case 'differs':
      return labels.get(selector.label) !== selector.value
    case 'contains':
      return labels.get(selector.label)?.includes(selector.value) ?? false
    case 'starts':
      return labels.get(selector.label)?.startsWith(selector.value) ?? false
    case 'ends':
      return labels.get(selector.label)?.endsWith(selector.value) ?? false
    case 'in':
      return isOneOf(labels.get(selector.label), selector.values)
    case 'not-in':
      return !isOneOf(labels.get(selector.label), selector.values)
    case 'not':
      return !selects(selector.of, labels)
    case 'and':
      return selector.of.every((part) => selects(part, labels))
    case 'or':
      return selector.of.some((part) => selects(part, labels))
    default:
      return unreachable(selector)
  }
}

function isOneOf(value: string | undefined, values: readonly string[]): boolean {
  return value !== undefined && values.includes(value)
}

export function equals(label: string, value: string): Selector {
  return { op: 'equals', label, value }
}

export function has(label: string): Selector {
  return { op: 'has', label }
}

export function not(of: Selector): Selector {
  return { op: 'not', of }
}

/** All of them hold; parts that say nothing are left out. */
export function and(...parts: readonly Selector[]): Selector {
  return allOf(parts)
}

/** The same of a list whose length is unknown: arguments are bounded. */
export function allOf(parts: readonly Selector[]): Selector {
  const saying = parts.flatMap((part) => (part.op === 'and' ? part.of : part.op === 'all' ? [] : [part]))
  if (saying.some((part) => part.op === 'none')) return NONE_AT_ALL
  const [first, second] = saying
  if (first === undefined) return ALL
  return second === undefined ? first : { op: 'and', of: saying }
}

/** At least one holds. */
export function or(...parts: readonly Selector[]): Selector {
  const [first, second] = parts
  if (first === undefined) return NONE_AT_ALL
  return second === undefined ? first : { op: 'or', of: parts }
}

/** The same tree with each leaf replaced. */
export function mapLeaves(selector: Selector, change: (leaf: Selector) => Selector): Selector {
  switch (selector.op) {
    case 'not':
      return not(mapLeaves(selector.of, change))
    case 'and':
    case 'or':
      return { op: selector.op, of: selector.of.map((part) => mapLeaves(part, change)) }
    default:
      return change(selector)
  }
}

/** The same with every label's name prefixed: it then selects by labels of the namespace or service account. */
export function withPrefix(selector: Selector, prefix: string): Selector {
  return mapLeaves(selector, (leaf) => ('label' in leaf ? { ...leaf, label: prefix + leaf.label } : leaf))
}
