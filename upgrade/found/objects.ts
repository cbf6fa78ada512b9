// SPDX-License-Identifier: Apache-2.0
/** Objects among the facts: by kind, and as they are named to people. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { GROUP, VERSION } from '#lib/kube/resources.ts'
import type { UpgradeFacts } from './facts.ts'

/** Of resources that versions before this one store. */
export const STORED_GROUP = `crd.${GROUP}`

/** "apps"; empty: of Kubernetes' core. */
export function groupOf({ apiVersion }: Pick<ApiObject, 'apiVersion'>): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''
}

/** The product's own, whatever is in front: "crd.netplane.io". */
export function isOurGroup(group: string): boolean {
  return group === GROUP || group.endsWith(`.${GROUP}`)
}

/** In any version of the group. */
export function objectsOf({ objects }: UpgradeFacts, group: string, kind: string): readonly ApiObject[] {
  return objects.filter((object) => object.kind === kind && groupOf(object) === group)
}

/** "kube-system/netplane-node", "default" */
export function nameOf({ metadata: { namespace, name } }: ApiObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** "DaemonSet kube-system/netplane-node" */
export function resourceText(object: ApiObject): string {
  return `${object.kind} ${nameOf(object)}`
}

/** An older server of ours has netplane.io/v3: its objects are the stored ones, seen once more. */
export function isAggregated(facts: UpgradeFacts): boolean {
  return objectsOf(facts, 'apiregistration.k8s.io', 'APIService').some(
    ({ metadata, spec }) => metadata.name === `${VERSION}.${GROUP}` && isObject(fieldsOf(spec)['service']),
  )
}
