// SPDX-License-Identifier: Apache-2.0
/** Outcomes of edits, together: what this version's own resources are to say, and what is refused.
 * Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import type { Raw } from '../stored/outcome.ts'
import { valueAt } from '../stored/edit.ts'
import { NAMES } from './text.ts'
import { refused, type Destination, type Edit, type EditOutcome, type Edits } from './edit.ts'

type Carried = Extract<EditOutcome, { kind: 'carried' }>

interface Collected {
  readonly specs: Readonly<Record<Destination, Raw>>
  readonly edits: readonly Edit[]
}

/** FelixConfiguration is read by the rules of stored objects. */
const READERS: Readonly<Record<Destination, (spec: Raw) => unknown>> = {
  installation: installationSpec.read,
  controllers: controllersConfigurationSpec.read,
  felix: (spec) => spec,
}

export const NO_EDITS: Edits = { edits: [], installation: {}, felix: {}, controllers: {}, refusals: [] }

export function collect(edits: readonly Edit[]): Edits {
  const { specs, edits: decided } = edits.reduce(withEdit, { specs: { installation: {}, felix: {}, controllers: {} }, edits: [] })
  return { edits: decided, ...specs, refusals: decided.flatMap(refusalOf) }
}

function refusalOf({ resource, field, base, mine, outcome }: Edit): Edits['refusals'] {
  if (outcome.kind !== 'refused') return []
  const gone = mine === undefined ? `: ${JSON.stringify(base)} is taken away` : ''
  return [{ resource, field, value: mine, reason: `${outcome.reason}${gone}`, remedy: outcome.remedy }]
}

function withEdit({ specs, edits }: Collected, edit: Edit): Collected {
  const { outcome } = edit
  if (outcome.kind !== 'carried') return { specs, edits: [...edits, edit] }
  const before = specs[outcome.to]
  const reason = conflictOf(before, outcome) ?? unreadable(outcome)
  if (reason !== undefined)
    return { specs, edits: [...edits, { ...edit, outcome: refused(reason, 'Say it in one way that this version takes.') }] }
  return { specs: { ...specs, [outcome.to]: merged(before, asSpec(outcome)) }, edits: [...edits, edit] }
}

/** Two edits that say one field in different words. */
function conflictOf(spec: Raw, { path, value, isElement }: Carried): string | undefined {
  if (isElement === true) return undefined
  const fields: readonly (readonly [readonly string[], unknown])[] =
    path.length > 0 ? [[path, value]] : Object.entries(fieldsOf(value)).map(([name, inner]) => [[name], inner])
  const clash = fields.find(([at, inner]) => {
    const said = valueAt(spec, at)
    return said !== undefined && !(isObject(said) && isObject(inner)) && !deepEqual(said, inner)
  })
  return clash === undefined ? undefined : `another edit says spec.${clash[0].join('.')} otherwise`
}

function unreadable(outcome: Carried): string | undefined {
  try {
    READERS[outcome.to](asSpec(outcome))
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return `spec.${thrown.path} of ${NAMES[outcome.to]} ${thrown.reason}`
  }
}

/** The fields of the outcome alone. */
function asSpec({ path, value, isElement }: Carried): Raw {
  return fieldsOf(path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), isElement === true ? [value] : value))
}

/** Elements of lists come after one another, each once. */
export function merged(a: unknown, b: unknown): Raw {
  const [before, after] = [fieldsOf(a), fieldsOf(b)]
  const both = Object.entries(after).map(([key, value]): readonly [string, unknown] => {
    const inner = before[key]
    if (isObject(inner) && isObject(value)) return [key, merged(inner, value)]
    return [key, Array.isArray(inner) && Array.isArray(value) ? distinct([...(inner as unknown[]), ...(value as unknown[])]) : value]
  })
  return { ...before, ...Object.fromEntries(both) }
}

function distinct(list: readonly unknown[]): readonly unknown[] {
  return list.filter((value, at) => list.findIndex((other) => deepEqual(other, value)) === at)
}
