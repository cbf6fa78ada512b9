// SPDX-License-Identifier: Apache-2.0
/** Labels of an object, and selectors in the form of the Kubernetes API. Layer: lib/kube. */
import { NO_LABELS } from '../../model/labels.ts'
import type { Labels } from '../../model/labels.ts'
import { allOf } from '../../model/selector/selector.ts'
import type { Selector } from '../../model/selector/selector.ts'
import { compareText } from '../../base/order.ts'
import { asRecord, FieldError, inside, under } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { fieldOr, listed, object, required } from '../schema/shape.ts'
import type { Shape } from '../schema/shape.ts'
import { text, texts, word } from '../schema/primitives.ts'

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

const expressionShape = object(
  {
    key: required('Key of a label.', text),
    operator: required('What is asked of its value.', word('In', 'NotIn', 'Exists', 'DoesNotExist')),
    values: listed('The values, for In and NotIn.', text, { most: 1024 }),
  },
  {
    rules: [
      {
        path: 'values',
        reason: 'must be said with In and NotIn, and with nothing else',
        cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        holds: ({ operator, values }) => (operator === 'In' || operator === 'NotIn') === values.length > 0,
      },
    ],
  },
)
const selectorShape = object({
  matchLabels: fieldOr<Raw, Raw>({}, 'Labels with the values that they must have.', texts),
  matchExpressions: listed('More that is asked of labels.', expressionShape, { most: 16 }),
})

/** matchLabels and matchExpressions of labels that have `prefix` in front; an empty one selects everything. */
export function labelSelectorShape(prefix: string): Shape<Selector> {
  return { schema: selectorShape.schema, read: (value) => labelSelector(asRecord(value), prefix) }
}

/** As {@link labelSelectorShape}. */
export function labelSelector(raw: Raw, prefix = ''): Selector {
  const { matchLabels, matchExpressions } = selectorShape.read(raw)
  const labels = under('matchLabels', () =>
    Object.keys(matchLabels)
      .sort()
      .map((key): Selector => {
        const value = matchLabels[key]
        if (typeof value !== 'string') throw new FieldError(`['${key}']`, 'must be text')
        return { op: 'equals', label: prefix + labelKey(key, `['${key}']`), value }
      }),
  )
  return allOf([...labels, ...matchExpressions.map((said, at) => under(`matchExpressions[${at}]`, () => expression(said, prefix)))])
}

function expression({ key, operator, values }: ReturnType<typeof expressionShape.read>, prefix: string): Selector {
  const label = prefix + labelKey(key, 'key')
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

function labelKey(key: string, path: string): string {
  return under(path, () => {
    if (/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/.test(key)) return key
    throw new FieldError('', 'must be the key of a label')
  })
}
