// SPDX-License-Identifier: Apache-2.0
/** Whether an apply of ours would change nothing, by what the server has. Layer: operator (pure).
 *
 * It answers such an apply with a new version where another client has applied something since, as the controller of
 * an admission policy's status does: only the order in which it lists managers has changed then. */
import { deepEqual, hasValues } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { ownedFields } from './owned-fields.ts'

/** False where in doubt: to apply what is there does no harm. */
export function isAppliedAlready(wanted: ApiObject, found: ApiObject): boolean {
  const text = ownedFields(found)
  if (text === '') return false
  const { labels, annotations } = wanted.metadata
  const contents = Object.entries(wanted).filter(([key]) => key !== 'apiVersion' && key !== 'kind')
  const fields = { ...Object.fromEntries(contents), metadata: { ...(labels && { labels }), ...(annotations && { annotations }) } }
  return hasValues(found, fields) && isFieldsOf(JSON.parse(text), fields)
}

/** Whether these are the fields of the value, none missing and none more: `fields` as a managed field's fieldsV1. */
function isFieldsOf(fields: unknown, value: unknown): boolean {
  if (!isObject(fields)) return false
  const entries = Object.entries(fields).filter(([name]) => name !== '.')
  // the server keeps it as one
  if (entries.length === 0) return true
  if (!isObject(value) && !Array.isArray(value)) return false
  const size = Array.isArray(value) ? value.length : Object.keys(value).length
  return entries.length === size && entries.every(([name, below]) => isFieldOf(name, below, value))
}

/** `name`: "f:spec"; of items of lists `k:{"name":"x"}` or `v:"x"`. */
function isFieldOf(name: string, below: unknown, value: object): boolean {
  const [kind, rest] = [name.slice(0, 2), name.slice(2)]
  if (kind === 'f:') return isObject(value) && rest in value && isFieldsOf(below, value[rest])
  if (!Array.isArray(value)) return false
  const key: unknown = JSON.parse(rest)
  if (kind === 'v:') return value.some((item) => deepEqual(item, key))
  if (kind !== 'k:' || !isObject(key)) return false
  return value.some((item) => isObject(item) && Object.entries(key).every(([field, one]) => item[field] === one) && isFieldsOf(below, item))
}
