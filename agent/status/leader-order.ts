// SPDX-License-Identifier: Apache-2.0
/** Which node writes what all of them know: every node finds the same one, without asking any other.
 * Layer: agent/status (pure).
 *
 * Others stand in, one after the other: the first may be down. Where nodes know different nodes, two may write the
 * same. What they make has the same name, so there is no second one. */
import { fnv1a64, mix32 } from '#lib/base/hash.ts'

/** After this long the next one looks whether it has been said. */
export const TURN_MS = 30_000
/** So many nodes are not all down. */
const STAND_INS = 8

export interface LeaderPlace {
  /** how many nodes come before this one */
  readonly at: number
  readonly of: number
}

/** undefined: it is not among them. */
export function placeAmong(node: string, nodes: Iterable<string>): LeaderPlace | undefined {
  let [at, of, found] = [0, 0, false]
  for (const other of nodes) {
    of++
    if (other < node) at++
    found ||= other === node
  }
  return found ? { at, of } : undefined
}

/** For how long the node at this place leaves it to others to say it; undefined: it never does. */
export function turnMs(place: LeaderPlace | undefined, what: string): number | undefined {
  if (place === undefined) return undefined
  const first = mix32(Number.parseInt(fnv1a64(what).slice(8), 16)) % place.of
  const turn = (place.at - first + place.of) % place.of
  return turn < STAND_INS ? turn * TURN_MS : undefined
}
