// SPDX-License-Identifier: Apache-2.0
/** Which namespace's questions are true of too many prefixes and endpoints. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { Addresses } from '../identities/addresses.ts'
import type { LivePredicate } from '../identities/identities.ts'
import { CLUSTER } from './policy-quota.ts'

/** Predicates of an identity cost time and memory, and identities of prefixes within one another have all of them. */
const MOST_WEIGHT = 1_048_576
/** So much of one namespace alone is too much, however few its questions are. */
const MOST_OF_ONE = 4 * MOST_WEIGHT
/** A namespace that asks less, or whose questions are true of less, is not to blame for what all come to. */
const MANY_PREDICATES = 1024
const LEAST_BLAMED = MOST_WEIGHT / 8

/** The one of these whose questions are true most often, where all are true too often. Not the one that asks most:
 * many prefixes side by side multiply only by what others ask of all of them. */
export function* heaviestOwner(addresses: Addresses, namespaces: readonly string[]): Sliced<string | undefined> {
  const { weight, times } = yield* addresses.weigh()
  if (weight <= MOST_WEIGHT) return undefined
  const asked = yield* sumByOwner([[[...addresses.identities.atoms], 1]])
  const weights = yield* sumByOwner(times)
  const weightOf = (owner: string): number => weights.get(owner) ?? 0
  const isToBlame = (owner: string): boolean =>
    weightOf(owner) > MOST_OF_ONE || (weightOf(owner) > LEAST_BLAMED && (asked.get(owner) ?? 0) >= MANY_PREDICATES)
  // of equal ones the first by name
  return namespaces.filter(isToBlame).sort((a, b) => weightOf(b) - weightOf(a))[0]
}

/** What several namespaces ask counts for each: else two that ask the same would go free. What the cluster asks is
 * there without them. */
function* sumByOwner(lists: Iterable<readonly [readonly LivePredicate[], number]>): Sliced<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>()
  for (const [atoms, weight] of lists) {
    for (const { rows } of atoms) {
      if (rows.has(CLUSTER)) continue
      for (const owner of rows.keys()) sums.set(owner, (sums.get(owner) ?? 0) + weight)
    }
    yield
  }
  return sums
}
