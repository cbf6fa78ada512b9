// SPDX-License-Identifier: Apache-2.0
/** Changes of single fields of JSON, kept with what was there before. Layer: upgrade (pure). */
import { isObject } from '#lib/base/object.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Difference, Fault, Raw, V3Object } from './outcome.ts'

export type Path = readonly (string | number)[]

export interface Edit {
  readonly path: Path
  /** undefined: the field goes */
  readonly after: unknown
  readonly why: string
}

/** A field that nothing can be made of. */
export interface Refusal {
  readonly path: Path
  readonly reason: string
}

/** What is to be done with an object: one thing about it, for each field that it concerns. */
export type Rule = (object: V3Object) => readonly (Edit | Refusal)[]

export interface Ruled {
  readonly object: V3Object
  readonly differences: readonly Difference[]
  readonly faults: readonly Fault[]
}

/** Each rule sees what those before it have made. */
export function applyRules(object: V3Object, rules: readonly Rule[]): Ruled {
  const ruled = rules.reduce<Ruled>((before, rule) => rule(before.object).reduce(applyOne, before), { object, differences: [], faults: [] })
  return { ...ruled, differences: oneEach(ruled.differences) }
}

/** Of a field that two rules have changed: what it was and what it is, for the reason of the first. */
function oneEach(differences: readonly Difference[]): readonly Difference[] {
  const byField = Map.groupBy(differences, ({ field }) => field)
  return [...byField.values()].flatMap((all) => {
    const [first, last] = [all[0], all.at(-1)]
    if (first === undefined || last === undefined || deepEqual(first.before, last.after)) return []
    return [{ ...first, after: last.after }]
  })
}

function applyOne({ object, differences, faults }: Ruled, step: Edit | Refusal): Ruled {
  const [field, value] = [pathText(step.path), valueAt(object, step.path)]
  if ('reason' in step) return { object, differences, faults: [...faults, { field, value, reason: step.reason }] }
  if (deepEqual(value, step.after)) return { object, differences, faults }
  const edited = withValue(object, step.path, step.after)
  const difference = { field, before: value, after: step.after, why: step.why }
  return { object: { ...object, ...edited }, differences: [...differences, difference], faults }
}

/** Undefined: there is no such field. Null counts as missing, as in the API. */
export function valueAt(value: unknown, path: Path): unknown {
  let found = value
  for (const step of path) {
    if (typeof step === 'number') found = Array.isArray(found) ? (found as readonly unknown[])[step] : undefined
    else found = isObject(found) && Object.hasOwn(found, step) ? found[step] : undefined
  }
  return found ?? undefined
}

/** The same object with one field that is another one, or gone. Objects on the way to it are made. */
function withValue(value: unknown, [step, ...rest]: Path, after: unknown): Raw {
  const before = isObject(value) ? value : {}
  if (typeof step !== 'string') return before
  const inner = Object.hasOwn(before, step) ? before[step] : undefined
  const [next] = rest
  const made = rest.length === 0 ? after : typeof next === 'number' ? withElement(inner, rest, after) : withValue(inner, rest, after)
  if (made === undefined) return Object.fromEntries(Object.entries(before).filter(([key]) => key !== step))
  return { ...before, [step]: made }
}

function withElement(value: unknown, [at, ...rest]: Path, after: unknown): readonly unknown[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.map((element, index) => {
    if (index !== at) return element
    if (rest.length === 0) return after
    return typeof rest[0] === 'number' ? withElement(element, rest, after) : withValue(element, rest, after)
  })
}

/** "spec.ingress[0].action", "metadata.labels['a.b/c']" */
export function pathText(path: Path): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : /^\w+$/.test(step) ? `.${step}` : `['${step}']`)).join('')
  return text.startsWith('.') ? text.slice(1) : text
}

/** The other way round. */
export function pathOf(text: string): Path {
  return Array.from(text.matchAll(/\['([^']*)'\]|\[(\d+)\]|([^.[\]]+)/g), ([, quoted, index, name = '']) =>
    index === undefined ? (quoted ?? name) : Number(index),
  )
}
