// SPDX-License-Identifier: Apache-2.0
/** One stored object → an object of this version, and what is not as it was. Layer: upgrade (pure). */
import { isObject } from '#lib/base/object.ts'
import { acceptedBy } from './accepted.ts'
import { applyRules } from './edit.ts'
import { STORED_KINDS, type RuleInput, type StoredKind } from './kinds.ts'
import type { StoredObject } from './metadata.ts'
import { isTiered, nameOf, tierOf } from './names.ts'
import { API_VERSION, type Outcome, type V3Object } from './outcome.ts'
import { readOwners, type OwnersByUid } from './owners.ts'

/** What is known of all that is stored. */
export interface StoredContext {
  readonly tiers: ReadonlySet<string>
  readonly owners: OwnersByUid
  readonly environment: RuleInput['environment']
}

export function kindOf(kind: string): StoredKind | undefined {
  return STORED_KINDS.find((candidate) => candidate.kind === kind)
}

/** Of kinds that are read by themselves: of others an empty list. */
export function readObject(stored: StoredObject, context: StoredContext): readonly Outcome[] {
  const { ref: of } = stored
  const reading = kindOf(of.kind)?.reading
  if (reading === undefined) return [refused(stored, 'kind', 'is not a kind of which this version knows')]
  switch (reading.how) {
    case 'addresses':
      return []
    case 'refused':
      return [refused(stored, '', reading.reason)]
    case 'left':
      return [{ kind: 'left', of, reason: reading.reason }]
    case 'carried': {
      const foreign = foreignReason(stored)
      if (foreign?.how === 'left') return [{ kind: 'left', of, reason: foreign.reason }]
      if (foreign?.how === 'refused') return [refused(stored, 'metadata.name', foreign.reason)]
      return [carriedWith(stored, context, reading.rules)]
    }
  }
}

function refused({ ref }: StoredObject, field: string, reason: string): Outcome {
  const value = field === 'kind' ? ref.kind : field === 'metadata.name' ? ref.name : undefined
  return { kind: 'refused', of: ref, faults: [{ field, value, reason }] }
}

/** Policies that other programs have put among ours, by what their names begin with. */
export const FOREIGN_NAMES = [
  { prefix: 'knp.', how: 'left', reason: 'it is made of a NetworkPolicy of networking.k8s.io, which is read itself' },
  { prefix: 'kanp.', how: 'left', reason: 'it is made of an AdminNetworkPolicy, which is read itself' },
  { prefix: 'kbanp.', how: 'left', reason: 'it is made of a BaselineAdminNetworkPolicy, which is read itself' },
  { prefix: 'ossg.', how: 'refused', reason: 'is of OpenStack, which is not supported' },
] as const

function foreignReason({ ref }: StoredObject): (typeof FOREIGN_NAMES)[number] | undefined {
  return isTiered(ref.kind) ? FOREIGN_NAMES.find(({ prefix }) => ref.name.startsWith(prefix)) : undefined
}

function carriedWith(
  stored: StoredObject,
  context: StoredContext,
  rules: Extract<StoredKind['reading'], { how: 'carried' }>['rules'],
): Outcome {
  const { ref: of } = stored
  const tier = isTiered(of.kind) ? tierOf(stored, context.tiers) : ''
  const owners = readOwners(stored, context.owners)
  const name = nameOf(stored, context.tiers)
  const ruled = applyRules(objectWith(stored, name, owners.foreign), rules({ name, tier, environment: context.environment }))
  const { faults, unused } = ruled.faults.length > 0 ? { faults: ruled.faults, unused: [] } : acceptedBy(ruled.object)
  if (faults.length > 0) return { kind: 'refused', of, faults }
  const differences = [...owners.differences, ...ruled.differences, ...unused]
  const read = { of, object: ruled.object, owners: owners.ours }
  return differences.length === 0 ? { kind: 'carried', ...read } : { kind: 'changed', ...read, differences }
}

function objectWith({ ref, labels, annotations, kept, spec }: StoredObject, name: string, ownerReferences: readonly unknown[]): V3Object {
  const metadata = {
    name,
    ...(ref.namespace === '' ? {} : { namespace: ref.namespace }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...kept,
    ...(ownerReferences.length > 0 && { ownerReferences }),
  }
  return { apiVersion: API_VERSION, kind: ref.kind, metadata, spec: spec === undefined ? {} : withoutNulls(spec, 0) }
}

/** Deeper than any field of ours is. */
const DEEPEST = 32

/** Null counts as missing, as in the API. */
function withoutNulls(value: unknown, depth: number): unknown {
  if (depth === DEEPEST) return value
  if (Array.isArray(value)) return value.map((element: unknown) => withoutNulls(element, depth + 1))
  if (!isObject(value)) return value
  const fields = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(fields.map(([key, inner]) => [key, withoutNulls(inner, depth + 1)]))
}
