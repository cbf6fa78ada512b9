// SPDX-License-Identifier: Apache-2.0
/** What of pools, of pods' addresses and of settings is not as it was. Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { compareText } from '#lib/base/order.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'

/** One by one, a sentence each. */
export function poolDifferences(before: Pick<Snapshot, 'pools'>, after: Pick<Snapshot, 'pools'>): readonly string[] {
  const names = [...new Set([...before.pools.keys(), ...after.pools.keys()])].sort(compareText)
  return names.flatMap((name) => {
    const [was, is] = [before.pools.get(name), after.pools.get(name)]
    if (was === undefined) return [`IPPool ${name} was not there`]
    if (is === undefined) return [`IPPool ${name} is not there any more`]
    return fieldsThatDiffer(was, is).map(
      (field) => `IPPool ${name}: ${field} was ${JSON.stringify(was[field])} and is ${JSON.stringify(is[field])}`,
    )
  })
}

function fieldsThatDiffer(was: IPPool, is: IPPool): readonly (keyof IPPool)[] {
  const fields: readonly (keyof IPPool)[] = ['cidr', 'natOutgoing', 'overlay', 'blockBits', 'assigns', 'nodes', 'namespaces']
  return fields.filter((field) => !deepEqual(was[field], is[field]))
}
