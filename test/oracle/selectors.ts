// SPDX-License-Identifier: Apache-2.0
/** A table of selectors → what our grammar says otherwise: matches, validity, canonical text, needs. Layer: test. */
import { ParseError } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { asRecord, each, flag, record, text } from '#lib/kube/parse/fields.ts'
import type { Raw } from '#lib/kube/parse/fields.ts'
import { needsOf } from '#lib/model/selector/needs.ts'
import { formatSelector, parseSelector } from '#lib/model/selector/text.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'

/** By part of the table: how many entries there are, and one line for each that differs. */
export function selectorMismatches(raw: Raw): { readonly counts: ReadonlyMap<string, number>; readonly wrong: readonly string[] } {
  const wrong: string[] = []
  const counts = new Map<string, number>()
  for (const [part, check] of Object.entries(CHECKS)) {
    const entries = each(raw, part, asRecord)
    counts.set(part, entries.length)
    for (const entry of entries) {
      const differs = check(read(text(entry, 'expr') ?? ''), entry)
      if (differs !== undefined) wrong.push(`${part}: ${JSON.stringify(entry)}: ${differs}`)
    }
  }
  return { counts, wrong }
}

type Read = { readonly selector: Selector } | { readonly error: string }

/** What differs, or undefined. */
type Check = (read: Read, entry: Raw) => string | undefined

const CHECKS: Readonly<Record<string, Check>> = {
  match: ofValid((selector, entry) => {
    const labels = record(entry, 'labels')
    const got = selects(selector, new Map(Object.keys(labels).map((key) => [key, String(labels[key])])))
    return got === flag(entry, 'match') ? undefined : `got ${got}`
  }),
  validity: (result, entry) => {
    const valid = 'selector' in result
    return valid === flag(entry, 'valid') ? undefined : valid ? `got ${formatSelector(result.selector)}` : result.error
  },
  canonical: ofValid((selector, entry) => {
    const got = formatSelector(selector)
    return got === text(entry, 'canonical') ? undefined : `got ${got}`
  }),
  labelRestrictions: ofValid((selector, entry) => {
    const got = Object.fromEntries(
      [...needsOf(selector)].map(([label, { present, absent, values }]) => [
        label,
        { mustBePresent: present, mustBeAbsent: absent, mustHaveOneOf: values && [...values] },
      ]),
    )
    return deepEqual(got, record(entry, 'restrictions')) ? undefined : `got ${JSON.stringify(got)}`
  }),
}

function ofValid(check: (selector: Selector, entry: Raw) => string | undefined): Check {
  return (result, entry) => ('selector' in result ? check(result.selector, entry) : result.error)
}

function read(expression: string): Read {
  try {
    return { selector: parseSelector(expression) }
  } catch (thrown) {
    if (thrown instanceof ParseError) return { error: thrown.message }
    throw thrown
  }
}
