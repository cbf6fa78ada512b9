// SPDX-License-Identifier: Apache-2.0
/** Fields that other clients have set of an object become ours, so that our next apply takes away those that it does
 * not name. Layer: lib/api (pure).
 *
 * A server-side apply removes no field that another client alone has set: of a manifest that another client applied
 * its containers and volumes would stay beside ours. */
import { fieldsOf, isObject, objectsIn, textOf } from '../base/object.ts'
import type { ApiObject } from './resource.ts'

/** Of clients that compare with what they applied last. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

export interface TakeOverPatch {
  readonly metadata: {
    /** of the object that was read: another version is not changed */
    readonly resourceVersion: string | undefined
    readonly annotations: Readonly<Record<string, null>>
    readonly managedFields: readonly object[]
  }
}

/** As a merge patch. Undefined: all fields are ours already. Labels and annotations stay with who has set them, and
 * so does what controllers write as a subresource. */
export function takeOver(object: ApiObject, manager: string): TakeOverPatch | undefined {
  const { resourceVersion, annotations = {} } = object.metadata
  const entries = objectsIn(object.metadata['managedFields'])
  const isOwn = (entry: Entry): boolean => entry['manager'] === manager && entry['operation'] === 'Apply' && !hasSubresource(entry)
  const others = entries.filter((entry) => !isOwn(entry) && !hasSubresource(entry) && contentsOf(entry).length > 0)
  if (others.length === 0 && annotations[LAST_APPLIED] === undefined) return undefined
  const rest = entries.filter((entry) => !isOwn(entry) && !others.includes(entry))
  const kept = others.flatMap((entry) => withFields(entry, Object.fromEntries(metadataOf(entry))))
  const own = entries.find(isOwn)
  const all = [fieldsOf(own?.['fieldsV1']), ...others.map((entry) => Object.fromEntries(contentsOf(entry)))].reduce(union, {})
  const [{ apiVersion = object.apiVersion } = {}] = others
  const entry = { manager, operation: 'Apply', apiVersion, fieldsType: 'FieldsV1', ...own, fieldsV1: all }
  return {
    metadata: {
      resourceVersion,
      annotations: annotations[LAST_APPLIED] === undefined ? {} : { [LAST_APPLIED]: null },
      managedFields: [...rest, ...kept, entry],
    },
  }
}

type Entry = Readonly<Record<string, unknown>>

function hasSubresource(entry: Entry): boolean {
  return textOf(entry['subresource']) !== ''
}

function partsOf({ fieldsV1 }: Entry): readonly [string, unknown][] {
  return Object.entries(fieldsOf(fieldsV1))
}

function metadataOf(entry: Entry): readonly [string, unknown][] {
  return partsOf(entry).filter(([name]) => name === 'f:metadata')
}

function contentsOf(entry: Entry): readonly [string, unknown][] {
  return partsOf(entry).filter(([name]) => name !== 'f:metadata')
}

function withFields(entry: Entry, fieldsV1: object): readonly object[] {
  return Object.keys(fieldsV1).length === 0 ? [] : [{ ...entry, fieldsV1 }]
}

/** Of two trees of fields. */
function union(one: Entry, other: Entry): Entry {
  const all = { ...one }
  for (const [name, below] of Object.entries(other)) {
    const there = all[name]
    all[name] = isObject(there) && isObject(below) ? union(there, below) : (there ?? below)
  }
  return all
}
