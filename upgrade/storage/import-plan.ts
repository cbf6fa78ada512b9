// SPDX-License-Identifier: Apache-2.0
/** What is still to be written so that the server has all that was stored. Layer: upgrade (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { deepEqual, hasValues } from '#lib/base/deep-equal.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { sortedEntries } from '#lib/base/order.ts'
import type { ReadInstallation } from '../stored/installation.ts'
import { findingText } from '../stored/ipam/findings.ts'
import { API_VERSION, storedText, STORED_API_VERSION, type Outcome, type Owner, type V3Object } from '../stored/outcome.ts'
import { IMPORTED_FROM } from './cluster-information.ts'

export interface ImportInput {
  readonly read: ReadInstallation
  /** of our kinds, as the server has them */
  readonly held: readonly ApiObject[]
  /** by name */
  readonly namespaces: ReadonlyMap<string, ApiObject>
}

export interface Write {
  /** "NetworkPolicy shop/web" */
  readonly text: string
  readonly object: ApiObject
  /** undefined: it is made */
  readonly before: ApiObject | undefined
}

export interface KindCount {
  readonly kind: string
  /** that are to be there */
  readonly wanted: number
  /** that are there as they are to be */
  readonly same: number
}

export interface ImportPlan {
  /** in the order in which they are to be made */
  readonly writes: readonly Write[]
  /** what is in the way: nothing is written then */
  readonly problems: readonly string[]
  /** stored objects that are not carried, a sentence each */
  readonly left: readonly string[]
  readonly counts: readonly KindCount[]
}

type Carried = Extract<Outcome, { readonly object: V3Object }>

export function planImport({ read, held, namespaces }: ImportInput): ImportPlan {
  const { outcomes, findings } = read
  const carried = outcomes.filter((outcome): outcome is Carried => 'object' in outcome && !isInformation(outcome.object))
  const [gone, here] = [carried.filter((one) => isGone(one, namespaces)), carried.filter((one) => !isGone(one, namespaces))]
  const byName = new Map(held.map((object) => [keyOf(object), object]))
  const wanted = [informationOf(outcomes), ...here.map((one) => objectOf(one, byName))]
  const kinds = new Map<string, { wanted: number; same: number }>()
  const writes = wanted.flatMap((object): readonly Write[] => {
    const before = byName.get(keyOf(object))
    const isSame = before !== undefined && isAsWanted(before, object)
    const count = kinds.get(object.kind) ?? { wanted: 0, same: 0 }
    kinds.set(object.kind, { wanted: count.wanted + 1, same: count.same + (isSame ? 1 : 0) })
    return isSame ? [] : [{ text: textOf(object), object, before }]
  })
  const known = new Set(wanted.map(keyOf))
  return {
    writes,
    problems: [
      ...outcomes.flatMap(refusalTexts),
      ...findings.filter(({ kind }) => kind === 'refused').map(findingText),
      ...here.flatMap((one) => endingText(one, namespaces)),
      ...held.filter((object) => !known.has(keyOf(object))).map(foreignText),
    ],
    left: gone.map(({ object }) => `${textOf(object)}: its namespace is gone`),
    counts: sortedEntries(kinds).map(([kind, count]) => ({ kind, ...count })),
  }
}

function refusalTexts(outcome: Outcome): readonly string[] {
  if (outcome.kind !== 'refused') return []
  return outcome.faults.map(({ field, value, reason }) =>
    [storedText(outcome.of), field, value === undefined ? '' : JSON.stringify(value), reason].filter((part) => part !== '').join(': '),
  )
}

function foreignText(object: ApiObject): string {
  return `${textOf(object)} is there already, and no stored object is it: delete it, or store it as well`
}

/** All objects and pods of the namespace are gone with it: nothing goes by this one. */
function isGone({ object: { metadata } }: Carried, namespaces: ImportInput['namespaces']): boolean {
  return metadata.namespace !== undefined && !namespaces.has(metadata.namespace)
}

/** Its pods may still be there, and the server takes no new object. */
function endingText({ object }: Carried, namespaces: ImportInput['namespaces']): readonly string[] {
  const { namespace = '' } = object.metadata
  const isEnding = namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined
  return isEnding ? [`${textOf(object)}: namespace ${namespace} is being deleted: wait until it is gone`] : []
}

function isInformation({ kind }: Pick<V3Object, 'kind'>): boolean {
  return kind === CLUSTER_INFORMATION.kind
}

/** Locked, until all is there. */
function informationOf(outcomes: readonly Outcome[]): ApiObject {
  const found = outcomes.find((outcome): outcome is Carried => 'object' in outcome && isInformation(outcome.object))
  const { name, ...kind } = CLUSTER_INFORMATION
  return {
    ...kind,
    metadata: { name, annotations: { [IMPORTED_FROM]: STORED_API_VERSION } },
    spec: { ...fieldsOf(found?.object.spec), datastoreReady: false },
  }
}

/** With its owners, as far as they are there. */
function objectOf({ object, owners }: Carried, held: ReadonlyMap<string, ApiObject>): ApiObject {
  const { ownerReferences = [], ...metadata } = object.metadata
  const ours = owners.flatMap((owner) => referenceTo(owner, object.metadata.namespace, held))
  const all = [...(Array.isArray(ownerReferences) ? (ownerReferences as readonly unknown[]) : []), ...ours]
  // the server says itself when it was made
  return asApiObject({
    ...object,
    metadata: { ...metadata, creationTimestamp: undefined, ...(all.length > 0 && { ownerReferences: all }) },
  })
}

function referenceTo(owner: Owner, namespace: string | undefined, held: ReadonlyMap<string, ApiObject>): readonly object[] {
  const { kind, name, controller, blockOwnerDeletion } = owner
  const found = held.get(keyOf({ kind, metadata: { namespace, name } })) ?? held.get(keyOf({ kind, metadata: { name } }))
  const uid = found?.metadata.uid
  if (uid === undefined) return []
  return [
    { apiVersion: API_VERSION, kind, name, uid, ...(controller && { controller }), ...(blockOwnerDeletion && { blockOwnerDeletion }) },
  ]
}

/** Other programs may add annotations. */
function isAsWanted(found: ApiObject, wanted: ApiObject): boolean {
  const [is, be] = [found.metadata, wanted.metadata]
  return (
    deepEqual(found['spec'] ?? {}, wanted['spec'] ?? {}) &&
    deepEqual(is.labels ?? {}, be.labels ?? {}) &&
    deepEqual(is['ownerReferences'] ?? [], be['ownerReferences'] ?? []) &&
    hasValues(is.annotations ?? {}, be.annotations ?? {}) &&
    deepEqual(is['finalizers'] ?? [], be['finalizers'] ?? [])
  )
}

interface Identity {
  readonly kind: string
  readonly metadata: { readonly namespace?: string | undefined; readonly name: string }
}

export function keyOf({ kind, metadata: { namespace = '', name } }: Identity): string {
  return `${kind}/${namespace}/${name}`
}

function textOf({ kind, metadata: { namespace, name } }: Identity): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`
}

/** "NetworkPolicy: 12 here, as they are stored" */
export function countText({ kind, wanted, same }: KindCount): string {
  return same === wanted ? `${kind}: ${wanted} here, as they are stored` : `${kind}: ${same} of ${wanted} here`
}

/** Groups that may be written at once, one after the other. */
export function inStages(writes: readonly Write[]): readonly (readonly Write[])[] {
  return [...Map.groupBy(writes, ({ object }) => object.kind).values()]
}
