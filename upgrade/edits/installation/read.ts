// SPDX-License-Identifier: Apache-2.0
/** An Installation of an older version → each of its fields, and where it is now. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import { stepsText } from '../comparable.ts'
import { refused, type Difference, type Edit } from '../edit.ts'
import { managersIn } from '../managers.ts'
import { isOf, type EditRule, type Surroundings } from '../rule.ts'
import { INSTALLATION_RULES } from './rules.ts'

export function installationEdits(objects: readonly ApiObject[], around: Surroundings): readonly Edit[] {
  const installation = objects.find(({ kind, metadata }) => kind === 'Installation' && metadata.name === 'default')
  if (installation === undefined) return []
  const managers = managersIn(installation)
  return fieldsOfSpec(installation['spec'], ['spec']).map(({ steps, mine, found }) => {
    const name = { resource: 'Installation default', kind: 'Installation', name: 'default' }
    const edit: Difference = { ...name, steps, field: stepsText(steps), base: undefined, mine, managers: managers(steps, mine) }
    const outcome = found?.decide(edit, around) ?? refused('this version has no such field', 'Take it away.')
    const isInPlace = outcome.kind === 'carried' && ['spec', ...outcome.path].join('.') === edit.field
    return { ...edit, outcome, applied: isInPlace ? 'overwritten' : 'goes' }
  })
}

interface SpecField {
  readonly steps: readonly string[]
  readonly mine: unknown
  readonly found: EditRule | undefined
}

/** As deep as a rule is of it. Null counts as missing, and so does an object without fields. Elements of a list are
 * known by their names. */
function fieldsOfSpec(value: unknown, steps: readonly string[]): readonly SpecField[] {
  if (value === null || value === undefined) return []
  const found = steps.length === 1 ? undefined : INSTALLATION_RULES.find((one) => isOf(one, stepsText(steps.slice(1))))
  const inner = found === undefined ? innerOf(value) : []
  if (found === undefined && isObject(value) && inner.length === 0) return []
  return inner.length === 0 ? [{ steps, mine: value, found }] : inner.flatMap(([key, part]) => fieldsOfSpec(part, [...steps, key]))
}

function innerOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (!Array.isArray(value)) return Object.entries(fieldsOf(value))
  const named = objectsIn(value).filter(({ name }) => textOf(name) !== '')
  return named.length < value.length ? [] : named.map(({ name, ...rest }) => [`[${textOf(name)}]`, rest] as const)
}
