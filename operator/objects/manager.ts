// SPDX-License-Identifier: Apache-2.0
/** Who looks after an object that is not ours, as it says itself. Layer: operator (pure). */
import { objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { declaredManagers, IGNORE, MANAGED_BY, managerText } from '#lib/control/declared-managers.ts'
import { FIELD_MANAGER } from './owned-fields.ts'

/** Who would put back what we change: "Argo CD (argocd.argoproj.io/tracking-id)". */
export function managerOf(object: ApiObject): string | undefined {
  if (object.metadata.annotations?.[IGNORE] === 'true') return `the administrator (${IGNORE})`
  const [first] = declaredManagers(object)
  return first === undefined || first.value === FIELD_MANAGER ? undefined : managerText(first)
}

/** The same of one that is to be ours: where it does not say, those who have written it; undefined: it is ours. */
export function foreignOwner(object: ApiObject): string | undefined {
  const { labels, managedFields } = object.metadata
  if (labels?.[MANAGED_BY] === FIELD_MANAGER) return undefined
  const writers = objectsIn(managedFields).map(({ manager }) => textOf(manager))
  return managerOf(object) ?? ([...new Set(writers)].sort().join(', ') || 'another client')
}
