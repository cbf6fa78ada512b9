// SPDX-License-Identifier: Apache-2.0
/** Rows by which rulesets know identities, and whose predicates multiply them. Layer: agent/compile (pure).
 *
 * A ruleset that asks about an address has a row for each identity that the address may have. All predicates in use,
 * of whatever policy, tell identities apart. So a policy that asks for many prefixes, or for many parts of all pods,
 * adds rows to other policies' rulesets. */
import type { Sliced } from '#lib/base/async/slices.ts'
import { rowsOf } from '../identities/identities.ts'
import type { Identity, LivePredicate } from '../identities/identities.ts'
import { CLUSTER } from './policy-quota.ts'

export interface IdentityRows {
  /** of all sets that are wanted, at the most */
  readonly rows: number
  /** of the cluster's own, if no namespace asked anything */
  readonly cluster: number
  /** of the identity with most */
  readonly mostOfOne: number
  /** by namespace: rows that there would not be if it asked nothing */
  readonly saved: ReadonlyMap<string, number>
}

/** Of identities as they will be when predicates that no wanted ruleset asks are forgotten. */
export function* countIdentityRows(identities: Iterable<Identity>): Sliced<IdentityRows> {
  const distinct = new Map<string, readonly LivePredicate[]>()
  for (const { users, atoms } of identities) {
    const wanted = users > 0 ? atoms.filter(({ rows: some }) => some.size > 0) : []
    if (wanted.length > 0) distinct.set(keyOf(wanted), wanted)
    yield
  }
  const saved = new Map<string, number>()
  const seen = new Map<string, Set<string>>()
  const cluster = new Set<string>()
  const sums = { rows: 0, cluster: 0, mostOfOne: 0 }
  for (const atoms of distinct.values()) {
    const ofOne = sumOf(atoms, rowsOf)
    sums.rows += ofOne
    sums.mostOfOne = Math.max(sums.mostOfOne, ofOne)
    const own = atoms.filter(({ rows: some }) => some.has(CLUSTER))
    const ownKey = keyOf(own)
    if (!cluster.has(ownKey)) sums.cluster += sumOf(own, (atom) => rowsFor(atom, CLUSTER))
    cluster.add(ownKey)
    for (const owner of new Set(atoms.flatMap(({ rows: some }) => [...some.keys()]))) {
      if (owner === CLUSTER) continue
      const keys = seen.get(owner) ?? new Set()
      seen.set(owner, keys)
      const others = atoms.filter((atom) => atom.rows.size > 1 || !atom.rows.has(owner))
      const key = keyOf(others)
      // without it this one would be the same as another
      const merges = others.length < atoms.length && (distinct.has(key) || keys.has(key))
      keys.add(key)
      const rows = sumOf(atoms, (atom) => (merges ? rowsOf(atom) : rowsFor(atom, owner)))
      saved.set(owner, (saved.get(owner) ?? 0) + rows)
      yield
    }
  }
  return { ...sums, saved }
}

function keyOf(atoms: readonly LivePredicate[]): string {
  return atoms.map(({ index }) => index).join()
}

function rowsFor({ rows }: LivePredicate, owner: string): number {
  return rows.get(owner) ?? 0
}

function sumOf(atoms: readonly LivePredicate[], rows: (atom: LivePredicate) => number): number {
  return atoms.reduce((sum, atom) => sum + rows(atom), 0)
}
