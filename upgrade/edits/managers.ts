// SPDX-License-Identifier: Apache-2.0
/** Who wrote a field: by `managedFields`, else by what kubectl keeps of its last apply. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import type { Raw } from '../stored/outcome.ts'
import { comparable } from './comparable.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** `kubectl apply`, as it is by default. */
export const CLIENT_SIDE_APPLY = 'kubectl-client-side-apply'

export type ManagersOf = (steps: readonly string[], mine: unknown) => readonly string[]

export function managersIn(object: ApiObject): ManagersOf {
  const entries = objectsIn(object.metadata['managedFields']).filter(({ subresource = '' }) => subresource === '')
  const applied = lastApplied(object)
  return (steps, mine) => {
    const owners = ownersOf(entries, steps)
    if (mine !== undefined && owners.length > 0) return owners
    return applied !== undefined && deepEqual(valueIn(applied, steps), mine) ? [CLIENT_SIDE_APPLY] : []
  }
}

function ownersOf(entries: readonly Raw[], steps: readonly string[]): readonly string[] {
  const found = entries.flatMap(({ manager, fieldsV1 }) => {
    const owned = ownedAt(fieldsV1, steps)
    return owned === undefined ? [] : [{ manager: textOf(manager), owned }]
  })
  // who has written the variable's value, not its name alone
  const writers = found.filter(({ owned }) => ['f:value', 'f:valueFrom'].some((key) => key in owned))
  const counted = writers.length > 0 ? writers : found
  return [...new Set(counted.map(({ manager }) => manager))].sort()
}

/** What is owned below a field, empty where it is owned as one thing with all around it; undefined: nothing of it. */
function ownedAt(fields: unknown, steps: readonly string[]): Raw | undefined {
  let owned = fieldsOf(fields)
  for (const [at, step] of steps.entries()) {
    if (at > 0 && Object.keys(owned).length === 0) return owned
    const inner = step.startsWith('[') ? elementOf(owned, step.slice(1, -1)) : owned[`f:${step}`]
    if (!isObject(inner)) return undefined
    owned = inner
  }
  return owned
}

/** `k:{"containerPort":80,"protocol":"TCP"}` is the element "80/TCP". */
function elementOf(owned: Raw, key: string): unknown {
  const found = Object.keys(owned).find(
    (name) =>
      name.startsWith('k:') &&
      Object.values(fieldsOf(JSON.parse(name.slice(2))))
        .map(String)
        .join('/') === key,
  )
  return found === undefined ? undefined : owned[found]
}

function lastApplied(object: ApiObject): Raw | undefined {
  const text = object.metadata.annotations?.[LAST_APPLIED]
  if (text === undefined) return undefined
  try {
    const applied = fieldsOf(JSON.parse(text))
    const { kind, apiVersion } = object
    return comparable({ ...applied, kind, apiVersion, metadata: { ...fieldsOf(applied['metadata']), name: object.metadata.name } })
  } catch {
    return undefined
  }
}

export function valueIn(value: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((found, step) => (isObject(found) && Object.hasOwn(found, step) ? found[step] : undefined), value)
}
