// SPDX-License-Identifier: Apache-2.0
/** Locks and marks of the two ClusterInformation objects: of the stored ones, and of ours. Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import { pluralOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { CLUSTER_INFORMATION, lockOf, readClusterInformation } from '#lib/kube/objects/cluster-information.ts'
import { STORED_API_VERSION } from '../stored/outcome.ts'
import { aggregatedService } from './api-service.ts'
import type { StorageClient } from './options.ts'

export const STORED_INFORMATION = { ...CLUSTER_INFORMATION, apiVersion: STORED_API_VERSION } as const

const STORED_DEFINITION: Named = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  name: `${pluralOf(CLUSTER_INFORMATION.kind)}.crd.netplane.io`,
}

/** On the stored one: when it was locked, as "2026-01-01T00:00:00.000Z". What is imported is of that time. */
export const LOCKED_AT = 'upgrade.netplane.io/locked-at'
/** On ours, with the version that was read: an import has begun. Without it agents have made ours, of nothing. */
export const IMPORTED_FROM = 'upgrade.netplane.io/imported-from'

/** False: `--finish` has taken what was stored. */
export async function isStoredThere(client: Pick<StorageClient, 'get'>, signal: AbortSignal): Promise<boolean> {
  return (await getOrNone(client, STORED_DEFINITION, { signal })) !== undefined
}

/** In ms since 1970; undefined: it is not locked, or not by an upgrade. */
export function lockedAt(stored: ApiObject | undefined): number | undefined {
  if (stored === undefined || readClusterInformation(stored).datastoreReady !== false) return undefined
  const at = Date.parse(stored.metadata.annotations?.[LOCKED_AT] ?? '')
  return Number.isNaN(at) ? undefined : at
}

/** All that was stored is here, and may have been changed since: it is never imported again. */
export async function isImported(client: Pick<StorageClient, 'get'>, signal: AbortSignal): Promise<boolean> {
  if ((await aggregatedService(client, { signal })) !== undefined) return false
  const ours = await getOrNone(client, CLUSTER_INFORMATION, { signal })
  return ours?.metadata.annotations?.[IMPORTED_FROM] !== undefined && lockOf(ours) === undefined
}
