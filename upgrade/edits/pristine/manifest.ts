// SPDX-License-Identifier: Apache-2.0
/** Manifests of older versions as they were before any edit, without definitions of resources.
 * Layer: upgrade (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { OldVariant } from '../../found/found.ts'
import { configMap } from './config-map.ts'
import { controllers, typha } from './deployments.ts'
import { nodeDaemonSet } from './node.ts'
import { rights } from './rights.ts'
import { templateOf } from './template.ts'

/** Of "3.27.0": a version between two that changed something has the changes of the first. */
export function pristineManifest(version: string, variant: OldVariant): readonly ApiObject[] {
  const template = templateOf(version, variant)
  const objects = [...rights(template), configMap(template), nodeDaemonSet(template), ...controllers(template), ...typha(template)]
  return objects.map(asApiObject)
}
