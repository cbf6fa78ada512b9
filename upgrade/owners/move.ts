// SPDX-License-Identifier: Apache-2.0
/** Owner references are kept aside before an upgrade, and put back after it. Layer: upgrade.
 *
 * Both may be cut off at any point, and are begun again: what is done is seen on the objects. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError } from '#lib/api/errors.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { keptReferences, KEPT, ourReferences, withOurs, withoutOurs, type OwnerReference, type OwnersPatch } from './references.ts'
import { dependentText, scanOwners, type Dependent } from './scan.ts'

export interface Moved {
  /** objects that were changed: "ConfigMap shop/menu" */
  readonly changed: readonly string[]
  /** what is in the way, a sentence each */
  readonly problems: readonly string[]
}

export type OwnersClient = Pick<ApiClient, 'request' | 'list' | 'get' | 'patch'>

/** Which object of today a reference means, in this namespace. */
export type OwnerNames = (reference: OwnerReference, namespace: string | undefined) => Named

/** Others may write the object at the same time. */
const TRIES = 5

/** No object has an owner of ours afterwards, unless there are problems. */
export async function keepOwners(client: OwnersClient): Promise<Moved> {
  return await eachOf(client, (dependent, object) => {
    const kept = keptReferences(object)
    return kept === undefined ? unreadable(dependent) : withoutOurs(object, kept)
  })
}

/** No object keeps one aside afterwards, unless there are problems. */
export async function restoreOwners(client: OwnersClient, ownerOf: OwnerNames): Promise<Moved> {
  return await eachOf(client, async (dependent, object) => {
    const kept = keptReferences(object)
    if (kept === undefined) return unreadable(dependent)
    if (object.metadata.annotations?.[KEPT] === undefined) return undefined
    const owners: OwnerReference[] = []
    for (const reference of kept) {
      const named = ownerOf(reference, object.metadata.namespace)
      const owner = await getOrNone(client, named)
      if (owner === undefined) return `${dependentText(dependent)}: its owner ${named.kind} ${named.name} is not there`
      owners.push({ ...reference, apiVersion: named.apiVersion, kind: named.kind, name: named.name, uid: owner.metadata.uid ?? '' })
    }
    return withOurs(object, owners)
  })
}

/** What the garbage collector would take for dead: references whose owner is not the object of that UID. A sentence
 * each. */
export async function deadOwners(client: OwnersClient): Promise<readonly string[]> {
  const { dependents, problems } = await scanOwners(client)
  const dead: string[] = []
  for (const dependent of dependents) {
    const { object } = dependent
    if (object.metadata.annotations?.[KEPT] !== undefined) dead.push(`${dependentText(dependent)}: its owners are kept aside`)
    for (const { apiVersion, kind, name, uid } of ourReferences(object)) {
      const owners = [object.metadata.namespace, undefined].map((namespace) => getOrNone(client, { apiVersion, kind, name, namespace }))
      if ((await Promise.all(owners)).some((owner) => owner?.metadata.uid === uid)) continue
      dead.push(`${dependentText(dependent)}: its owner ${kind} ${name} (${apiVersion}) with UID ${uid} is not there`)
    }
  }
  return [...problems, ...dead]
}

type Change = OwnersPatch | string | undefined

/** A text says why an object is left as it is. */
async function eachOf(
  client: OwnersClient,
  changeOf: (dependent: Dependent, object: ApiObject) => Change | Promise<Change>,
): Promise<Moved> {
  const { dependents, problems } = await scanOwners(client)
  const changed: string[] = []
  const found = [...problems]
  for (const dependent of dependents) {
    const outcome = await changeOne(client, dependent, (object) => changeOf(dependent, object))
    if (outcome === 'changed') changed.push(dependentText(dependent))
    else if (outcome !== 'as it was') found.push(outcome)
  }
  return { changed, problems: found }
}

/** Otherwise why it could not be changed. */
async function changeOne(
  client: OwnersClient,
  dependent: Dependent,
  changeOf: (object: ApiObject) => Change | Promise<Change>,
): Promise<string> {
  const { kind, object: first } = dependent
  const { name, namespace } = first.metadata
  const named = { ...kind, name, namespace }
  let object: ApiObject | undefined = first
  for (let tries = 0; tries < TRIES && object !== undefined; tries++) {
    const change = await changeOf(object)
    if (change === undefined) return 'as it was'
    if (typeof change === 'string') return change
    if (!kind.verbs.has('patch')) return `${dependentText(dependent)}: the server lets nothing of this kind be changed`
    try {
      await client.patch(named, change, { type: 'merge' })
      return 'changed'
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      if (thrown.status === 404) return 'as it was'
      if (thrown.reason !== 'Conflict') return `${dependentText(dependent)}: ${thrown.message}`
      object = await getOrNone(client, named)
    }
  }
  return object === undefined ? 'as it was' : `${dependentText(dependent)}: another program writes it again and again`
}

function unreadable(dependent: Dependent): string {
  return `${dependentText(dependent)}: annotation ${KEPT} cannot be read`
}
