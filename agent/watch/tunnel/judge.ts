// SPDX-License-Identifier: Apache-2.0
/** What of a peer's probes arrives, and what it says of ours. Layer: agent (pure).
 *
 * A small probe counts as lost only in a round in which another kind arrived. So a peer loses nothing that is down, has
 * no agent, or has an older one. A large probe counts as lost only in a round in which the small one without a forced
 * checksum arrived. */
import { KINDS, type Kind, type Probe } from './probe-packet.ts'

/** In a row. */
const LOST_ROUNDS = 3

export interface Heard {
  readonly run: string
  /** the peer's, which may not be over */
  readonly round: number
  readonly kinds: ReadonlySet<Kind>
  /** rounds since each was heard last */
  readonly missed: Readonly<Record<Kind, number>>
  readonly said: Pick<Probe, 'size' | 'misses'>
}

const NONE_MISSED: Heard['missed'] = { plain: 0, large: 0, summed: 0 }

/** A round is over when the next begins. What is late says nothing. */
export function hear(before: Heard | undefined, probe: Probe): Heard {
  const { run, round, kind } = probe
  if (before === undefined) return heardOf(probe, new Set([kind]), NONE_MISSED)
  if (run !== before.run) return heardOf(probe, new Set([kind]), { ...before.missed, [kind]: 0 })
  if (round < before.round) return before
  if (round === before.round) return heardOf(probe, new Set([...before.kinds, kind]), { ...before.missed, [kind]: 0 })
  return heardOf(probe, new Set([kind]), { ...afterRound(before), [kind]: 0 })
}

function heardOf({ run, round, ...said }: Probe, kinds: ReadonlySet<Kind>, missed: Heard['missed']): Heard {
  return { run, round, kinds, missed, said }
}

function afterRound({ kinds, missed }: Heard): Heard['missed'] {
  const of = (kind: Kind): number => (kinds.has(kind) ? 0 : missed[kind] + 1)
  return { plain: of('plain'), large: kinds.has('plain') ? of('large') : 0, summed: of('summed') }
}

/** Of the peer's probes; for the peer to hear. */
export function missesOf({ missed }: Heard): readonly Kind[] {
  return KINDS.filter((kind) => missed[kind] >= LOST_ROUNDS)
}

/** `all` of the tunnel's packets, those without a checksum, or large ones alone. */
export type Lost = 'all' | 'unsummed' | 'large'

/** undefined: nothing. */
export function lostOf(misses: readonly Kind[]): Lost | undefined {
  if (misses.includes('plain')) return misses.includes('summed') ? 'all' : 'unsummed'
  return misses.includes('large') ? 'large' : undefined
}
