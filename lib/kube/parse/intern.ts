// SPDX-License-Identifier: Apache-2.0
/** Values that many objects have alike, held once: a node's name, the labels of all pods of a Deployment.
 * Layer: lib/kube. */
import type { Labels } from '../../model/labels.ts'
import type { PodGroup } from '../../model/pod.ts'
import type { NamedPort } from '../../model/policy.ts'

export interface InternPool {
  readonly text: (text: string) => string
  readonly labels: (labels: Labels) => Labels
  readonly ports: (ports: readonly NamedPort[]) => readonly NamedPort[]
  readonly group: (group: PodGroup) => PodGroup
}

/** Each part is emptied when it grows past `limit`. */
export function createInternPool(limit = 50_000): InternPool {
  const text = keyed<string>(limit, (value) => value)
  return {
    text,
    labels: keyed(limit, (labels) => JSON.stringify([...labels])),
    ports: keyed(limit, (ports) => JSON.stringify(ports)),
    group: keyed(limit, ({ prefix, owner }) => `${prefix} ${owner}`),
  }
}

/** Keeps nothing. */
export const NO_INTERN_POOL: InternPool = {
  text: (text) => text,
  labels: (labels) => labels,
  ports: (ports) => ports,
  group: (group) => group,
}

/** Values with the same key are alike. */
function keyed<T>(limit: number, keyOf: (value: T) => string): (value: T) => T {
  const pool = new Map<string, T>()
  return (value) => {
    const key = keyOf(value)
    const known = pool.get(key)
    if (known !== undefined) return known
    if (pool.size >= limit) pool.clear()
    pool.set(key, value)
    return value
  }
}
