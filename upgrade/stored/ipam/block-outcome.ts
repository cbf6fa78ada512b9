// SPDX-License-Identifier: Apache-2.0
/** A block of this version as an outcome. Layer: upgrade (pure). */
import { ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { Difference, Outcome, StoredRef } from '../outcome.ts'

/** `of`: the stored block that it comes from. */
export function outcomeWith(of: StoredRef | undefined, piece: IPBlock, differences: readonly Difference[]): Outcome {
  const object = ipBlockObject(piece)
  const read = { object, owners: [] }
  return of === undefined || differences.length > 0 ? { kind: 'changed', of, ...read, differences } : { kind: 'carried', of, ...read }
}
