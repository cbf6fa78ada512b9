// SPDX-License-Identifier: Apache-2.0
/** Which namespace's network sets have too many rows. Layer: agent/compile (pure).
 *
 * A prefix of a set has a row once any question is true of the set, whoever asks it. So sets count for the namespace
 * that they are in, and not for the one that asks. */
import { compareText } from '#lib/base/order.ts'
import type { Addresses } from '../identities/addresses.ts'
import { CLUSTER, type PolicyQuota } from './policy-quota.ts'

/** Sets of namespaces may have what rules and the cluster's sets leave of half of the table, and a quarter in any case.
 * The namespace with the largest is told where they have more; of equal ones the first by name. `leftOut`: those whose
 * sets count for nothing already. */
export function largestSets(addresses: Addresses, room: PolicyQuota, leftOut: ReadonlySet<string>): string | undefined {
  const sets = addresses.setPrefixes
  const [half, least] = room.share('nets')
  const most = Math.max(half - room.sum('nets') - (sets.get(CLUSTER)?.asked ?? 0), least)
  const rows = [...sets].flatMap(([namespace, { asked }]) =>
    namespace === CLUSTER || leftOut.has(namespace) ? [] : [{ namespace, asked }],
  )
  if (rows.reduce((sum, { asked }) => sum + asked, 0) <= most) return undefined
  return rows.sort((a, b) => b.asked - a.asked || compareText(a.namespace, b.namespace))[0]?.namespace
}
