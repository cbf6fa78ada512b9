// SPDX-License-Identifier: Apache-2.0
/** Whether a service with affinity leads a client to the same endpoint each time. Layer: agent/proof. */
import { isSamePlace, type Ask, type Place } from './asks.ts'
import type { ProveOptions } from './prove.ts'

/** A client that is led to one of two endpoints at random goes to the same one so often once in 128 times. */
const TIMES = 8
/** An endpoint that goes and is there again at once leads clients away rightly; it does not do so twice. */
const ROUNDS = 2

/** False: the client was led away from an endpoint that the service still has, before its time was over, in each round.
 * True also where the flow table does not say to which endpoint it was led. */
export async function keepsEndpoint(ask: Ask, options: ProveOptions): Promise<boolean> {
  const { affinitySeconds } = ask
  if (affinitySeconds === undefined || options.endpointsOf(ask).length < 2) return true
  for (let round = 0; round < ROUNDS; round++) if (!(await isLedAway(ask, affinitySeconds * 1000, options))) return true
  return false
}

/** Each time from a new port. */
async function isLedAway(ask: Ask, affinityMs: number, { clock, client, endpointsOf }: ProveOptions): Promise<boolean> {
  let last: { readonly endpoint: Place; readonly began: number } | undefined
  for (let time = 0; time < TIMES; time++) {
    const began = clock.now()
    const endpoint = (await client.ask(ask, ask.how))?.endpoint
    if (endpoint === undefined) continue
    const before = last
    last = { endpoint, began }
    if (before === undefined || isSamePlace(before.endpoint, endpoint) || clock.now() - before.began >= affinityMs) continue
    if (endpointsOf(ask).some((one) => isSamePlace(one, before.endpoint))) return true
  }
  return false
}
