// SPDX-License-Identifier: Apache-2.0
/** Owners of stored objects that are stored objects themselves: they get other UIDs. Layer: upgrade (pure). */
import { GROUP } from '#lib/kube/resources.ts'
import type { StoredObject } from './metadata.ts'
import { nameOf } from './names.ts'
import type { Difference, Owner, Raw } from './outcome.ts'
import { otherUid } from './uid.ts'

const OURS = new RegExp(`^(crd\\.)?${GROUP.replaceAll('.', '\\.')}/`)
const WHY = 'the owner has another UID now: it is to be looked up'

/** By the UID that is stored, and by that which clients saw. */
export type OwnersByUid = ReadonlyMap<string, Pick<Owner, 'kind' | 'name'>>

export interface ReadOwners {
  readonly ours: readonly Owner[]
  /** those of other groups: they keep their UIDs */
  readonly foreign: readonly Raw[]
  readonly differences: readonly Difference[]
}

export function ownersByUid(all: readonly StoredObject[], tiers: ReadonlySet<string>): OwnersByUid {
  return new Map(
    all.flatMap((stored) => {
      const { kind, uid } = stored.ref
      const owner = { kind, name: nameOf(stored, tiers) }
      return [uid, otherUid(uid) ?? ''].filter((known) => known !== '').map((known) => [known, owner] as const)
    }),
  )
}

/** An owner that is not stored any more would take the object with it: it is left out. */
export function readOwners({ ownerReferences }: StoredObject, known: OwnersByUid): ReadOwners {
  const isOurs = ({ apiVersion }: Raw): boolean => typeof apiVersion === 'string' && OURS.test(apiVersion)
  const read = ownerReferences.map((reference, at) => ({ reference, at })).filter(({ reference }) => isOurs(reference))
  const found = read.map(({ reference, at }) => ({ reference, at, owner: ownerOf(reference, known) }))
  return {
    ours: found.flatMap(({ owner }) => owner ?? []),
    foreign: ownerReferences.filter((reference) => !isOurs(reference)),
    differences: found.map(({ reference, at, owner }) => ({
      field: `metadata.ownerReferences[${at}]`,
      before: reference,
      after: owner,
      why: owner === undefined ? 'there is no such owner any more' : WHY,
    })),
  }
}

function ownerOf(reference: Raw, known: OwnersByUid): Owner | undefined {
  const { uid, controller, blockOwnerDeletion } = reference
  const owner = typeof uid === 'string' ? known.get(uid) : undefined
  return owner && { ...owner, controller: controller === true, blockOwnerDeletion: blockOwnerDeletion === true }
}
