// SPDX-License-Identifier: Apache-2.0
/** What older versions were made of. Layer: upgrade (pure). */
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { OLD_VARIANTS, type Found } from '../found/found.ts'
import { pristineManifest } from '../edits/pristine/manifest.ts'
import { namedText } from '../steps/object-text.ts'

/** A version of each shape that manifests have had. */
const VERSIONS = ['3.15.0', '3.20.0', '3.22.0', '3.26.0', '3.29.0', '3.31.0']
const SYSTEM = 'netplane-system'
/** That variant, and its DaemonSet. */
const CANAL = 'canal'

/** Of the operator before this version: all that it has made beside agents and controllers. */
const OF_OPERATOR: readonly Named[] = [
  { apiVersion: 'apps/v1', kind: 'Deployment', namespace: SYSTEM, name: 'netplane-typha' },
  { apiVersion: 'v1', kind: 'Service', namespace: SYSTEM, name: 'netplane-typha' },
  { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: SYSTEM, name: 'netplane-typha' },
  { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: SYSTEM, name: 'netplane-controllers' },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: SYSTEM, name: 'csi-node-driver' },
  { apiVersion: 'apps/v1', kind: 'Deployment', namespace: SYSTEM, name: 'netplane-apiserver' },
  { apiVersion: 'v1', kind: 'Service', namespace: SYSTEM, name: 'netplane-api' },
  { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'netplane-apiserver', name: 'netplane-apiserver' },
  { apiVersion: 'v1', kind: 'Service', namespace: 'netplane-apiserver', name: 'netplane-api' },
  { apiVersion: 'v1', kind: 'ConfigMap', namespace: SYSTEM, name: 'cni-config' },
]

/** Objects that may be there of an installation like this one, and that it does not have any more. `target`: what it
 * has. Of other ways to install it none: names as `canal` and `flannel` are other products' as well. */
export function obsoleteObjects(
  { method, daemonSet }: Pick<Found, 'method' | 'daemonSet'>,
  target: readonly ApiObject[],
): readonly Named[] {
  const isCanal = daemonSet.metadata.name === CANAL
  const variants = OLD_VARIANTS.filter((variant) => (variant === CANAL) === isCanal)
  const manifests = VERSIONS.flatMap((version) => variants.flatMap((variant) => pristineManifest(version, variant))).map(namedOf)
  const all = new Map((method === 'manifest' ? manifests : OF_OPERATOR).map((named) => [keyOf(named), named]))
  for (const object of target) all.delete(keyOf(namedOf(object)))
  return [...all.values()].filter(({ kind }) => kind !== 'Namespace' && kind !== 'CustomResourceDefinition')
}

/** A kind is the same in each version that it is served in. */
function keyOf(named: Named): string {
  return namedText(named)
}
