// SPDX-License-Identifier: Apache-2.0
/** Owner references that name objects of ours, which have other UIDs after an upgrade: found, kept aside on the
 * object that has them, and put back. Layer: upgrade (pure).
 *
 * The garbage collector deletes what has only owners that it does not find. So a reference to an old UID must be gone
 * before the new objects are there. It waits in an annotation of the object itself: one patch takes it away and
 * keeps it, and no record elsewhere can be lost. */
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'

/** A JSON list of owner references, as they were. */
export const KEPT = 'upgrade.netplane.io/owner-references'

/** As metadata.ownerReferences has it, with all its fields. */
export type OwnerReference = Readonly<Record<string, unknown>> & {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Groups of which an upgrade makes new objects. What the operator's group holds stays as it is. */
const GROUPS: ReadonlySet<string> = new Set(['netplane.io', 'crd.netplane.io'])

/** What is to be changed of an object, as a merge patch. */
export interface OwnersPatch {
  readonly metadata: {
    /** of the object that was read: another is not changed */
    readonly uid: string | undefined
    readonly resourceVersion: string | undefined
    readonly ownerReferences: readonly OwnerReference[]
    readonly annotations: Readonly<Record<string, string | null>>
  }
}

export function referencesOf({ metadata }: ApiObject): readonly OwnerReference[] {
  return objectsIn(metadata['ownerReferences']).filter(isReference)
}

/** Those of an object that name one of ours. */
export function ourReferences(object: ApiObject): readonly OwnerReference[] {
  return referencesOf(object).filter(isOurs)
}

export function isOurs({ apiVersion }: OwnerReference): boolean {
  return GROUPS.has(apiVersion.split('/')[0] ?? '')
}

/** Undefined where the annotation is there and cannot be read. */
export function keptReferences({ metadata }: ApiObject): readonly OwnerReference[] | undefined {
  const text = metadata.annotations?.[KEPT]
  if (text === undefined) return []
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) && list.every(isReference) ? list : undefined
  } catch {
    return undefined
  }
}

/** Takes our references away and keeps them. Undefined: there are none. */
export function withoutOurs(object: ApiObject, kept: readonly OwnerReference[]): OwnersPatch | undefined {
  const ours = ourReferences(object)
  if (ours.length === 0) return undefined
  const others = referencesOf(object).filter((reference) => !isOurs(reference))
  // one that another program has written again is the newer one
  const all = [...kept.filter((one) => !ours.some((reference) => isSameOwner(one, reference))), ...ours]
  return patchOf(object, others, JSON.stringify(all))
}

/** Puts back what was kept, with the UIDs of the owners of today. */
export function withOurs(object: ApiObject, owners: readonly OwnerReference[]): OwnersPatch {
  const others = referencesOf(object).filter((reference) => !owners.some((owner) => isSameOwner(owner, reference)))
  return patchOf(object, [...others, ...owners], null)
}

/** In one namespace. A reference to a stored object and one to what the API showed of it name the same. */
function isSameOwner(one: OwnerReference, other: OwnerReference): boolean {
  return isOurs(one) && isOurs(other) && one.kind === other.kind && one.name === other.name
}

function patchOf({ metadata }: ApiObject, ownerReferences: readonly OwnerReference[], kept: string | null): OwnersPatch {
  const { uid, resourceVersion } = metadata
  return { metadata: { uid, resourceVersion, ownerReferences, annotations: { [KEPT]: kept } } }
}

function isReference(value: unknown): value is OwnerReference {
  if (!isObject(value)) return false
  const fields = fieldsOf(value)
  return ['apiVersion', 'kind', 'name', 'uid'].every((name) => textOf(fields[name]) !== '')
}
