// SPDX-License-Identifier: Apache-2.0
/** Host endpoints that are there, and those that are to be → what is written. Layer: controllers (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import { asApiObject, type ApiObject, type Collection } from '#lib/api/resource.ts'
import { isAutomatic } from '#lib/kube/objects/automatic-host-endpoint.ts'
import type { DesiredEndpoint, DesiredEndpoints } from './desired.ts'

export const HOST_ENDPOINTS: Collection = { apiVersion: 'netplane.io/v3', kind: 'HostEndpoint' }

export type Change = { readonly verb: 'create' | 'update' | 'delete'; readonly object: ApiObject }

export interface Changes {
  readonly changes: readonly Change[]
  /** names of ours that others' endpoints have: those stay */
  readonly taken: readonly string[]
}

/** `found`: all that there are. Only automatic ones are changed, and those of nodes that wait are not. */
export function endpointChanges({ endpoints, waiting }: DesiredEndpoints, found: Iterable<ApiObject>): Changes {
  const missing = new Map(endpoints)
  const changes: Change[] = []
  const taken: string[] = []
  for (const object of found) {
    const wanted = missing.get(object.metadata.name)
    missing.delete(object.metadata.name)
    if (!isAutomatic(object)) {
      if (wanted !== undefined) taken.push(wanted.name)
    } else if (wanted !== undefined) {
      if (!isAsWanted(object, wanted)) changes.push({ verb: 'update', object: changed(object, wanted) })
    } else if (!waiting.has(nodeOf(object))) changes.push({ verb: 'delete', object })
  }
  const made = [...missing.values()].map((wanted): Change => ({ verb: 'create', object: changed(undefined, wanted) }))
  return { changes: [...made, ...changes], taken: taken.sort() }
}

function nodeOf({ spec }: ApiObject): string {
  return isObject(spec) && typeof spec['node'] === 'string' ? spec['node'] : ''
}

function isAsWanted({ metadata, spec }: ApiObject, { labels, spec: wanted }: DesiredEndpoint): boolean {
  return deepEqual(metadata.labels, labels) && deepEqual(spec, wanted)
}

/** Annotations, owners and finalizers of others stay. */
function changed(found: ApiObject | undefined, { name, labels, spec }: DesiredEndpoint): ApiObject {
  return asApiObject({ ...HOST_ENDPOINTS, metadata: { ...found?.metadata, name, labels }, spec })
}
