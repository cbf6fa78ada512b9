// SPDX-License-Identifier: Apache-2.0
/** Words of a spec as its schema has them, where an older program took them in any case. Layer: lib/kube. */
import { isObject } from '../../base/object.ts'
import type { Schema } from '../../base/schema.ts'

/** What the schema does not know stays as it is. */
export function canonical(value: unknown, schema: Schema | undefined): unknown {
  if (schema === undefined) return value
  if (typeof value === 'string') return schema.enum?.find((one) => String(one).toLowerCase() === value.toLowerCase()) ?? value
  if (Array.isArray(value)) return value.map((one: unknown) => canonical(one, schema.items))
  if (!isObject(value)) return value
  const { properties = {} } = schema
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, canonical(part, Object.hasOwn(properties, key) ? properties[key] : undefined)]),
  )
}
