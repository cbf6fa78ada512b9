// SPDX-License-Identifier: Apache-2.0
/** Nodes that get this version in the place of the one before, and that one again, under load: programs and layouts of
 * maps are others. Layer: bench. */
import { Lab } from '../../lab/lab.ts'
import { defaultAgentCommand } from '../../lab/paths.ts'
import { previousVersion } from '../../testkit/previous/build.ts'
import { LOAD } from './cluster.ts'
import type { LossFigure, Losses } from './result.ts'
import { sumOf } from './sum.ts'
import { lossesUnder, rest, timed } from './under.ts'

const LAB = 'benchupgrade'
/** after the last node is ready: what old programs left is carried over */
const AFTER_MS = 2000

/** There and back, `times` over; control: the same load for as long as one way took. */
export async function upgrade(resources: string, times: number): Promise<readonly LossFigure[]> {
  const { agentCommand: before } = await previousVersion()
  await Lab.remove(LAB)
  await using lab = await Lab.up({ name: LAB, resources, agentCommand: before })
  const now = defaultAgentCommand()
  const losses = { upgrade: [] as Losses[], downgrade: [] as Losses[] }
  const run = { lasted: 0 }
  const change = (command: readonly string[]): Promise<Losses> =>
    lossesUnder(lab, LOAD, async () => {
      run.lasted = await timed(() => roll(lab, command))
    })
  for (let time = 0; time < times; time++) {
    losses.upgrade.push(await change(now))
    losses.downgrade.push(await change(before))
  }
  const control = await lossesUnder(lab, LOAD, () => rest(run.lasted))
  const runs = times * lab.topology.nodes.length
  return (['upgrade', 'downgrade'] as const).map((id) => ({ id, runs, fault: sumOf(losses[id]), control }))
}

/** Node by node: its agent ends, and another is started and ready. */
async function roll(lab: Lab, agentCommand: readonly string[]): Promise<void> {
  for (const { name } of lab.topology.nodes) {
    await lab.agents.stop(name, 'SIGTERM')
    await Lab.build({ name: lab.name, agentCommand })
  }
  await rest(AFTER_MS)
}
