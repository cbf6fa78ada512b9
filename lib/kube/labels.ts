// SPDX-License-Identifier: Apache-2.0
/** Labels of an object, and selectors in the form of the Kubernetes API. Layer: lib/kube. */
import { NO_LABELS } from '../model/labels.ts'
import type { Labels } from '../model/labels.ts'
import { and } from '../model/selector.ts'
import type { Selector } from '../model/selector.ts'
import { compareText } from '../base/order.ts'
import { asRecord, each, FieldError, inside, oneOf, only, text, under } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'

/** metadata.labels, one map for all objects with the same. */
export function labelsOf(input: ParseInput): Labels {
  return inside(input.raw, 'metadata', (metadata) => inside(metadata, 'labels', (raw) => labelMap(raw, input)))
}

/** Sorted by key. */
export function labelMap(raw: Raw, { intern, shared }: Pick<ParseInput, 'intern' | 'shared'>): Labels {
  const keys = Object.keys(raw)
  if (keys.length === 0) return NO_LABELS
  const labels = new Map<string, string>()
  for (const key of keys.sort()) {
    const value = raw[key]
    if (typeof value !== 'string') throw new FieldError(`['${key}']`, 'must be text')
    labels.set(intern(key), intern(value))
  }
  return shared.labels(labels)
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

/** matchLabels and matchExpressions of labels that have `prefix` in front; an empty one selects everything. */
export function labelSelector(raw: Raw, prefix = ''): Selector {
  only(raw, ['matchLabels', 'matchExpressions'])
  const labels = inside(raw, 'matchLabels', (wanted) =>
    Object.keys(wanted)
      .sort()
      .map((key): Selector => {
        const value = wanted[key]
        if (typeof value !== 'string') throw new FieldError(`['${key}']`, 'must be text')
        return { op: 'equals', label: prefix + labelKey(key, `['${key}']`), value }
      }),
  )
  return and(...labels, ...each(raw, 'matchExpressions', (value) => expression(asRecord(value), prefix)))
}

function expression(raw: Raw, prefix: string): Selector {
  only(raw, ['key', 'operator', 'values'])
  const label = prefix + labelKey(text(raw, 'key') ?? '', 'key')
  const operator = oneOf(raw, 'operator', { words: OPERATORS, absent: undefined })
  if (operator === undefined) throw new FieldError('operator', 'is missing')
  const values = each(raw, 'values', asText)
  const needsValues = operator === 'In' || operator === 'NotIn'
  if (needsValues !== values.length > 0)
    throw new FieldError('values', needsValues ? `are missing for ${operator}` : `must be empty for ${operator}`)
  const sorted = [...new Set(values)].sort(compareText)
  switch (operator) {
    case 'In':
      return { op: 'in', label, values: sorted }
    case 'NotIn':
      return { op: 'not-in', label, values: sorted }
    case 'Exists':
      return { op: 'has', label }
    case 'DoesNotExist':
      return { op: 'not', of: { op: 'has', label } }
  }
}

export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  throw new FieldError('', 'must be text')
}

function labelKey(key: string, path: string): string {
  return under(path, () => {
    if (/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/.test(key)) return key
    throw new FieldError('', 'must be the key of a label')
  })
}
