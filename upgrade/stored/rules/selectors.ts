// SPDX-License-Identifier: Apache-2.0
/** Selectors that ask for built-in labels by names of older versions. Layer: upgrade (pure). */
import { ParseError } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import { NAMESPACE_LABEL, NAMESPACE_PREFIX, SERVICE_ACCOUNT_PREFIX } from '#lib/model/labels.ts'
import { mapLeaves, type Selector } from '#lib/model/selector/selector.ts'
import { formatSelector, parseSelector } from '#lib/model/selector/text.ts'
import { valueAt, type Edit, type Path, type Rule } from '../edit.ts'

const FIELDS: ReadonlySet<string> = new Set(['selector', 'notSelector', 'namespaceSelector', 'serviceAccountSelector', 'nodeSelector'])

/** Labels of older versions, whole names and beginnings of names, with what they are here. */
export const OLD_LABELS = [
  { old: 'netplane/k8s_ns', now: NAMESPACE_LABEL, isPrefix: false },
  { old: 'k8s_ns/label/', now: NAMESPACE_PREFIX, isPrefix: true },
  { old: 'k8s_sa/label/', now: SERVICE_ACCOUNT_PREFIX, isPrefix: true },
] as const

const WHY = 'the label has this name now'
/** Selectors stand in rules of a policy, or in templates of a configuration. */
const DEEPEST = 8

export const oldSelectors: Rule = (object) => editsBelow(valueAt(object, ['spec']), ['spec'])

function editsBelow(value: unknown, path: Path): readonly Edit[] {
  if (path.length > DEEPEST) return []
  if (Array.isArray(value)) return value.flatMap((element: unknown, at) => editsBelow(element, [...path, at]))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === 'string' && FIELDS.has(key) ? selectorEdits(inner, [...path, key]) : editsBelow(inner, [...path, key]),
  )
}

function selectorEdits(text: string, path: Path): readonly Edit[] {
  try {
    const before = parseSelector(text)
    const after = mapLeaves(before, leafNow)
    return deepEqual(before, after) ? [] : [{ path, after: formatSelector(after), why: WHY }]
  } catch (thrown) {
    // the reader refuses it
    if (thrown instanceof ParseError) return []
    throw thrown
  }
}

function leafNow(leaf: Selector): Selector {
  return 'label' in leaf ? { ...leaf, label: labelNow(leaf.label) } : leaf
}

function labelNow(label: string): string {
  const found = OLD_LABELS.find(({ old, isPrefix }) => (isPrefix ? label.startsWith(old) : label === old))
  return found === undefined ? label : found.now + label.slice(found.old.length)
}
