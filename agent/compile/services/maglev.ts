// SPDX-License-Identifier: Apache-2.0
/** Maglev's table: which backend each hash of a flow leads to, the same on every node, and nearly the same when one
 * backend goes. Layer: agent/compile (pure).
 *
 * Eisenbud and others, "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4. */
import { MAGLEV_SIZE } from '#lib/base/bpf-constants.ts'
import { fnv1a64, mix32 } from '#lib/base/hash.ts'
import type { Addr, Port } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'

export interface MaglevBackend {
  readonly addr: Addr
  readonly port: Port
}

/** More than a slot's number can hold get no table. */
export const MOST_BACKENDS = 0xffff

/** Index into `backends` for each hash: depends on the backends' identities, not on their order. There must be 1 ..
 * MOST_BACKENDS, all different. */
export function maglevSlots(backends: readonly MaglevBackend[]): Uint16Array {
  const turns = backends.map(walkOf).sort((a, b) => compareText(a.identity, b.identity))
  const places = Uint32Array.from(turns, ({ start }) => start)
  const slots = new Uint16Array(MAGLEV_SIZE)
  const taken = new Uint8Array(MAGLEV_SIZE)
  for (let filled = 0; ;) {
    for (const [turn, { index, step }] of turns.entries()) {
      let place = places[turn] ?? 0
      // no division: this runs a few hundred thousand times
      while (taken[place] === 1) place = place + step < MAGLEV_SIZE ? place + step : place + step - MAGLEV_SIZE
      places[turn] = place
      taken[place] = 1
      slots[place] = index
      if (++filled === MAGLEV_SIZE) return slots
    }
  }
}

interface Walk {
  readonly identity: string
  readonly index: number
  readonly start: number
  readonly step: number
}

/** One backend's way through all places: their number is prime, so any step reaches each of them. */
function walkOf({ addr, port }: MaglevBackend, index: number): Walk {
  const identity = `${addr}${port}`
  const hash = fnv1a64(identity)
  const [high, low] = [mix32(Number.parseInt(hash.slice(0, 8), 16)), mix32(Number.parseInt(hash.slice(8), 16))]
  return { identity, index, start: high % MAGLEV_SIZE, step: (low % (MAGLEV_SIZE - 1)) + 1 }
}
