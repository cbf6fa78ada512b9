// SPDX-License-Identifier: Apache-2.0
/** Pods of ours: where they are, which are in trouble, and what their containers are called. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'

/** Where the operator and what it installs are. */
export const OWN_NAMESPACES = ['netplane-operator', 'netplane-system'] as const
const OURS = 'app.kubernetes.io/part-of=netplane'

export interface Container {
  readonly name: string
  readonly restarts: number
}

/** All of our namespaces, and those of ours that are elsewhere; in the order of namespaces and names. */
export async function ownObjects(client: ApiClient, apiVersion: string, kind: string): Promise<readonly ApiObject[]> {
  const lists = await Promise.all([
    client.list({ apiVersion, kind }, { labelSelector: OURS }),
    ...OWN_NAMESPACES.map((namespace) => client.list({ apiVersion, kind, namespace })),
  ])
  const byName = new Map(lists.flat().map((object) => [`${object.metadata.namespace ?? ''}/${object.metadata.name}`, object]))
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
}

/** As its status counts them; those of its spec where there is none yet. */
export function containersOf({ spec, status }: ApiObject): readonly Container[] {
  const named = (of: unknown, ...fields: readonly string[]): readonly Readonly<Record<string, unknown>>[] =>
    fields.flatMap((field): readonly unknown[] => (isObject(of) && Array.isArray(of[field]) ? of[field] : [])).filter(isObject)
  const counted = new Map(named(status, 'initContainerStatuses', 'containerStatuses').map((one) => [one['name'], one['restartCount']]))
  return named(spec, 'initContainers', 'containers').map(({ name }) => ({ name: String(name), restarts: Number(counted.get(name) ?? 0) }))
}

/** Those in trouble first, or in their order. */
export function byTrouble(pods: readonly ApiObject[]): readonly ApiObject[] {
  return [...pods].sort((a, b) => Number(isInTrouble(b)) - Number(isInTrouble(a)))
}

function isInTrouble(pod: ApiObject): boolean {
  return !isReady(pod) || containersOf(pod).some(({ restarts }) => restarts > 0)
}

function isReady({ status }: ApiObject): boolean {
  const conditions: unknown = isObject(status) ? status['conditions'] : undefined
  return Array.isArray(conditions) && conditions.some((one) => isObject(one) && one['type'] === 'Ready' && one['status'] === 'True')
}
