// SPDX-License-Identifier: Apache-2.0
/** What is lost, and how long it takes, when another program removes what is the agent's own. Layer: bench. */
import type { Lab } from '../../lab/lab.ts'
import { partCommand } from '../base/root.ts'
import { LOAD } from './cluster.ts'
import type { LossFigure, Losses } from './result.ts'
import { sumOf } from './sum.ts'
import { lossesUnder, rest, timed } from './under.ts'

/** The node that the client asks. */
const NODE = 'node/node-a'
/** found at once or within a second */
const AT_ONCE = ['link', 'program', 'filter', 'device', 'program-pin', 'route', 'sysctl'] as const
/** the same, of which no packet knows: not in the quick form */
const PINS = ['link-pin', 'map-pin'] as const
/** found by the round of tables, within a minute */
const BY_ROUND = ['frontend', 'address'] as const
/** of a removal: half a round of tables beside what follows */
const LONGEST_MS = 120_000

/** One after the other under load; control: the same load for as long as they took. `quick`: nothing that takes a
 * minute, or that traffic does not depend on. */
export async function removeAll(lab: Lab, quick: boolean): Promise<LossFigure> {
  const removed: Record<string, Losses & { readonly backMs: number }> = {}
  const run = { backMs: 0, lasted: 0 }
  for (const name of quick ? AT_ONCE : [...AT_ONCE, ...PINS, ...BY_ROUND]) {
    const losses = await lossesUnder(lab, LOAD, async () => {
      run.lasted += await timed(async () => {
        run.backMs = Number(await lab.mustRun(NODE, [...partCommand('loss/removals'), name], { timeoutMs: LONGEST_MS }))
      })
    })
    removed[name] = { ...losses, backMs: run.backMs }
  }
  const all = Object.values(removed)
  const control = await lossesUnder(lab, LOAD, () => rest(run.lasted))
  return { id: 'foreign-removal', runs: all.length, fault: sumOf(all), removed, control }
}
