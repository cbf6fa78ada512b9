// SPDX-License-Identifier: Apache-2.0
/** Which object of today an old owner reference means. Layer: upgrade (pure). */
import { resources } from '#lib/kube/resources.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import type { OwnerNames } from '../owners/move.ts'
import { readStoredObject, type StoredObject } from '../stored/metadata.ts'
import { isTiered, nameOf, tierNames } from '../stored/names.ts'
import { API_VERSION, STORED_API_VERSION } from '../stored/outcome.ts'
import { ownersByUid } from '../stored/owners.ts'

const NAMESPACED: ReadonlySet<string> = new Set(resources(felixSchema()).flatMap(({ kind, namespaced }) => (namespaced ? [kind] : [])))
/** That names of policies of the default tier had in front. */
const PREFIX = 'default.'

/** Of an owner: what belongs to the whole cluster has none. */
export function ownerNamespace(kind: string, dependentNamespace: string | undefined): string {
  return NAMESPACED.has(kind) ? (dependentNamespace ?? '') : ''
}

/** By the UID of what was stored, as it is stored or as clients saw it; else by the name. `objects`: what is stored. */
export function ownerNames(objects: readonly unknown[]): OwnerNames {
  const stored = objects.map(readStoredObject).flatMap((one) => (one.kind === 'read' ? [one.stored] : []))
  const tiers = tierNames(stored)
  const byUid = ownersByUid(stored, tiers)
  const storedNames = new Map(stored.map((one) => [keyOf(one.ref, one.ref.name), nameOf(one, tiers)]))
  const names = new Set(stored.map((one) => keyOf(one.ref, nameOf(one, tiers))))
  return ({ apiVersion, kind, name, uid }, dependentNamespace) => {
    const namespace = ownerNamespace(kind, dependentNamespace)
    const byName = apiVersion === STORED_API_VERSION ? storedNames.get(keyOf({ kind, namespace }, name)) : shownName()
    return { apiVersion: API_VERSION, kind, name: byUid.get(uid)?.name ?? byName ?? name, namespace }

    /** 3.29.0 to 3.29.3 showed the prefix as well. */
    function shownName(): string | undefined {
      const bare = isTiered(kind) && name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
      return [name, bare].find((one) => names.has(keyOf({ kind, namespace }, one)))
    }
  }
}

function keyOf({ kind, namespace }: Pick<StoredObject['ref'], 'kind' | 'namespace'>, name: string): string {
  return `${kind}/${namespace}/${name}`
}
