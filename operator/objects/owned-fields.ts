// SPDX-License-Identifier: Apache-2.0
/** Which fields of an object a client has applied, as the server keeps account of it. Layer: operator (pure). */
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'

/** Our name as an owner of fields. */
export const FIELD_MANAGER = 'netplane-operator'

/** Label of every object that the operator renders. */
export const MANAGED_BY = 'app.kubernetes.io/managed-by'

/** An object of ours that has this, with the value "true", is left as it is. */
export const IGNORE = 'operator.netplane.io/ignore'

/** A field that another client has changed is that client's by then, and no longer in here: so this text is another
 * one exactly when a field of ours has another value, or is gone. Empty: we have applied nothing. */
export function ownedFields({ metadata }: ApiObject): string {
  const entries: readonly unknown[] = Array.isArray(metadata['managedFields']) ? metadata['managedFields'] : []
  const ours = entries.find((entry) => isObject(entry) && entry['manager'] === FIELD_MANAGER && entry['operation'] === 'Apply')
  return isObject(ours) ? JSON.stringify(ours['fieldsV1']) : ''
}

/** Who says that it is theirs, for people; undefined: it is ours, or says nothing. */
export function foreignOwner({ metadata }: ApiObject): string | undefined {
  const { labels = {}, annotations = {} } = metadata
  const release = annotations['meta.helm.sh/release-name']
  if (labels[MANAGED_BY] === FIELD_MANAGER) return undefined
  if (release !== undefined) return `the chart's release ${release}`
  const argo = annotations['argocd.argoproj.io/tracking-id'] ?? labels['argocd.argoproj.io/instance']
  if (argo !== undefined) return `Argo CD (${argo})`
  const managedBy = labels[MANAGED_BY]
  if (managedBy !== undefined) return managedBy
  const entries: readonly unknown[] = Array.isArray(metadata['managedFields']) ? metadata['managedFields'] : []
  const managers = entries.flatMap((entry) => (isObject(entry) && typeof entry['manager'] === 'string' ? [entry['manager']] : []))
  return [...new Set(managers)].sort().join(', ') || 'another client'
}
