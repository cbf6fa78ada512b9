// SPDX-License-Identifier: Apache-2.0
/** What is lost under a load while something happens, and beside it while nothing does. Layer: bench. */
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import type { Lab } from '../../lab/lab.ts'
import { lossesOf, underLoad } from '../../lab/traffic/load.ts'
import type { Load } from '../../lab/traffic/load.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Losses } from './result.ts'

/** Throws InternalError when there was nothing to lose. */
export async function lossesUnder(lab: Lab, load: Load, happen: () => Promise<void>): Promise<Losses> {
  const result = await underLoad(lab, load, happen)
  const { lost, refused } = lossesOf(result)
  if (result.streams.length === 0 || result.requests.some(({ ok }) => ok === 0)) throw new InternalError('there was no load to lose from')
  return { lost, refused, socketDrops: result.socketDrops, softnetDrops: result.softnetDrops }
}

/** `happen`, and how many ms it took. */
export async function timed(happen: () => Promise<void>): Promise<number> {
  const start = systemClock.now()
  await happen()
  return systemClock.now() - start
}

export async function rest(ms: number): Promise<void> {
  await systemClock.sleep(ms, new AbortController().signal)
}

/** Resolves when the agent of each node has said `event`. Throws InternalError with the end of a log when one has
 * not in time. */
export async function untilSaid(lab: Lab, event: string, timeoutMs: number): Promise<void> {
  for (const { name } of lab.topology.nodes) {
    const said = (): true | undefined => (countOf(lab, name, event) > 0 ? true : undefined)
    if ((await waitFor(said, { timeoutMs, everyMs: 200 })) === undefined)
      throw new InternalError(`the agent of ${name} has not said ${event}: ${lab.log(name).slice(-1500)}`)
  }
}

/** How often the agent of a node has said it. */
export function countOf(lab: Lab, node: string, event: string): number {
  return lab.log(node).split(`"event":"${event}"`).length - 1
}
