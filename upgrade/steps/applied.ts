// SPDX-License-Identifier: Apache-2.0
/** Which objects are as a run has written them. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { hasValues } from '#lib/base/deep-equal.ts'
import { objectsIn } from '#lib/base/object.ts'
import { workloadImages } from './workload-image.ts'

export const WORKLOADS: ReadonlySet<string> = new Set(['DaemonSet', 'Deployment'])

/** A workload of this version is not written again: its settings are in no other place. Others are as rendered. */
export function isApplied(found: ApiObject | undefined, object: ApiObject, manager: string): found is ApiObject {
  if (found === undefined || !hasApplied(found, manager)) return false
  if (WORKLOADS.has(object.kind)) return workloadImages(found).join() === workloadImages(object).join()
  const { metadata, ...contents } = object
  return hasValues(found, contents) && hasValues(found.metadata.labels, metadata.labels ?? {})
}

function hasApplied({ metadata }: ApiObject, name: string): boolean {
  return objectsIn(metadata['managedFields']).some(({ manager, operation }) => manager === name && operation === 'Apply')
}
