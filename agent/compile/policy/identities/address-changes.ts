// SPDX-License-Identifier: Apache-2.0
/** Which addresses and prefixes get another identity. Layer: agent/compile (pure). */
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { Identity } from './identities.ts'

/** An address's old and new identity, by its own row or by that of the prefix around it. */
export interface IdentityMove {
  readonly was: Identity
  readonly now: Identity
  /** it has no row any more */
  readonly isGone: boolean
}

/** What is different since last time. */
export interface AddressChanges {
  readonly ends: ReadonlyMap<Addr, IdentityMove>
  readonly nets: ReadonlyMap<string, NetMove>
}

export interface NetMove extends IdentityMove {
  readonly cidr: Cidr
  /** it had no row before */
  readonly isNew: boolean
}

/** What is different after both, one after the other. */
export function joined(first: AddressChanges, then: AddressChanges): AddressChanges {
  const ends = new Map(first.ends)
  const nets = new Map(first.nets)
  for (const [addr, move] of then.ends) ends.set(addr, { ...move, was: ends.get(addr)?.was ?? move.was })
  for (const [key, move] of then.nets) {
    const { was, isNew } = nets.get(key) ?? move
    // the prefix came and went: no row of it was written
    if (isNew && move.isGone) nets.delete(key)
    else nets.set(key, { ...move, was, isNew })
  }
  return { ends, nets }
}
