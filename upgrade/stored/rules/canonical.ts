// SPDX-License-Identifier: Apache-2.0
/** Words and durations in the case that the API server takes, by its own schema. Layer: upgrade (pure). */
import { isObject } from '#lib/base/object.ts'
import type { Schema } from '#lib/base/schema.ts'
import { valueAt, type Edit, type Path, type Rule } from '../edit.ts'

const WHY = 'is written so here'
const EMPTY = 'is empty, as if it were missing'

/** Of spec. Values that fit in no case stay, for the reader to refuse. */
export function canonical(schema: Schema): Rule {
  return (object) => editsOf(valueAt(object, ['spec']), schema, ['spec'])
}

function editsOf(value: unknown, schema: Schema, path: Path): readonly Edit[] {
  if (typeof value === 'string') return textEdits(value, schema, path)
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined ? [] : value.flatMap((element: unknown, at) => editsOf(element, items, [...path, at]))
  }
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const { properties = {} } = schema
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    return property === undefined ? [] : editsOf(inner, property, [...path, key])
  })
}

function textEdits(value: string, schema: Schema, path: Path): readonly Edit[] {
  if (value === '' && schema.enum?.includes(value) === false && typeof path.at(-1) === 'string')
    return [{ path, after: undefined, why: EMPTY }]
  const fitting = fittingText(value, schema)
  return fitting === undefined || fitting === value ? [] : [{ path, after: fitting, why: WHY }]
}

/** Undefined: there is none. */
function fittingText(value: string, { enum: words, pattern }: Schema): string | undefined {
  const lower = value.toLowerCase()
  if (words !== undefined) {
    if (words.includes(value)) return value
    return words.filter((word) => typeof word === 'string').find((word) => word.toLowerCase() === lower)
  }
  if (pattern === undefined) return undefined
  const fits = new RegExp(pattern)
  // a number alone is one of seconds
  const candidates = [value, lower, `${lower.charAt(0).toUpperCase()}${lower.slice(1)}`, ...(/^\d+$/.test(value) ? [`${value}s`] : [])]
  return candidates.find((candidate) => fits.test(candidate))
}
