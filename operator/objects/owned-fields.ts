// SPDX-License-Identifier: Apache-2.0
/** Which fields of an object a client has applied, as the server keeps account of it. Layer: operator (pure). */
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { MANAGED_BY } from '#lib/control/declared-managers.ts'

/** Our name as an owner of fields. */
export const FIELD_MANAGER = 'netplane-operator'

/** A field that another client has changed is that client's by then, and no longer in here: so this text is another
 * one exactly when a field of ours has another value, or is gone. Empty: we have applied nothing. */
export function ownedFields({ metadata }: ApiObject): string {
  const entries: readonly unknown[] = Array.isArray(metadata['managedFields']) ? metadata['managedFields'] : []
  const ours = entries.find((entry) => isObject(entry) && entry['manager'] === FIELD_MANAGER && entry['operation'] === 'Apply')
  return isObject(ours) ? JSON.stringify(ours['fieldsV1']) : ''
}

/** Clients that have set this field of the spec, as the server keeps account of it. */
export function settersOf({ metadata }: ApiObject, field: string): readonly string[] {
  return objectsIn(metadata['managedFields']).flatMap(({ manager, fieldsV1 }) =>
    `f:${field}` in fieldsOf(fieldsOf(fieldsV1)['f:spec']) ? [textOf(manager)] : [],
  )
}

/** We have applied it, or it was given to us by its label. */
export function isOurs(object: ApiObject): boolean {
  return ownedFields(object) !== '' || object.metadata.labels?.[MANAGED_BY] === FIELD_MANAGER
}
