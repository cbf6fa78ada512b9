// SPDX-License-Identifier: Apache-2.0
/** An older installation → its edits, and what this version's resources are to say instead. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import type { Found } from '../found/found.ts'
import type { Refusal } from '../refusal.ts'
import { appliedBy, isRendered } from './applied.ts'
import { collect, NO_EDITS } from './collect.ts'
import { destinationOf } from './destinations.ts'
import { differences, resourceText } from './differences.ts'
import type { Edits } from './edit.ts'
import { installationEdits } from './installation/read.ts'
import { pristineManifest } from './pristine/manifest.ts'
import { NAMESPACE } from './pristine/template.ts'
import type { Surroundings } from './rule.ts'

/** Of older forms. `rendered`: what this version applies, without any edit carried. Of an installation by a manifest
 * its objects are compared; of the operator and of the chart the Installation alone counts, as the operator puts
 * objects back. */
export function readEdits({ objects }: UpgradeFacts, found: Found, rendered: readonly ApiObject[]): Edits {
  const { method, variant, version, target, datastore, daemonSet } = found
  const around = surroundingsOf(objects, { target, namespace: found.namespace })
  if (method !== 'manifest') return collect(installationEdits(objects, around))
  if (variant === undefined) return NO_EDITS
  if (datastore === 'etcd') return { ...NO_EDITS, refusals: [withoutBase(daemonSet)] }
  // of kinds that were not read none is known to be gone
  const kinds = new Set(objects.map(({ kind }) => kind))
  const base = pristineManifest(version, variant).filter(({ kind }) => kinds.has(kind))
  return manifestEdits({ base, live: objects, rendered }, around)
}

function withoutBase(daemonSet: ApiObject): Refusal {
  return {
    resource: resourceText(daemonSet),
    field: '',
    value: undefined,
    reason: 'edits of the variants for etcd are not compared',
    remedy: 'Move its resources to the API datastore first.',
  }
}

interface Compared {
  readonly base: readonly ApiObject[]
  readonly live: readonly ApiObject[]
  readonly rendered: readonly ApiObject[]
}

export function manifestEdits({ base, live, rendered }: Compared, around: Surroundings): Edits {
  const applied = appliedBy(rendered)
  const isDone = isRendered(rendered)
  const found = differences(base, live).filter((edit) => !isDone(edit))
  return collect(found.map((edit) => ({ ...edit, outcome: destinationOf(edit, around), applied: applied(edit) })))
}

export function surroundingsOf(objects: readonly ApiObject[], { target, namespace }: Pick<Found, 'target' | 'namespace'>): Surroundings {
  return { target, nodes: objects.filter(({ kind }) => kind === 'Node'), endpoint: endpointIn(objects, namespace) }
}

function endpointIn(objects: readonly ApiObject[], namespace: string = NAMESPACE): ApiObject | undefined {
  const isIt = ({ kind, metadata }: ApiObject): boolean => kind === 'ConfigMap' && metadata.name === 'cluster-services-endpoint'
  return objects.find((object) => isIt(object) && object.metadata.namespace === namespace)
}
