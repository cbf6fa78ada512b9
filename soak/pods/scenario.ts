// SPDX-License-Identifier: Apache-2.0
/** The form whose agents read a real API server and give pods their addresses: pods come and go, and the processes
 * that serve them are killed. Layer: soak. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { underLoad } from '../../lab/traffic/load.ts'
import { textAt } from '../../lab/raw.ts'
import type { NegativeProbe } from '../../lab/tools/probes.ts'
import { trafficChecks, type Check } from '../checks.ts'
import { COMPARED_EVERY, ScenarioRun } from '../run.ts'
import type { SoakRun } from '../scenario.ts'
import { closedCheck } from '../marks/mark-checks.ts'
import { startKnocks } from '../marks/marked-traffic.ts'
import { POD_LOAD, POD_WAYS } from './cluster.ts'
import { PodSoak } from './pod-soak.ts'
import { PodPlan, type PodStep } from './steps.ts'

export async function* podsScenario(run: SoakRun<PodStep>): AsyncGenerator<Check> {
  const { name, kept, history, seed, say } = run
  await using soak = await PodSoak.up({ name, kept, say: (text) => say(`.. ${text}`) })
  await soak.begin()
  const course = await ScenarioRun.begin(soak, new PodPlan(seed), run)
  let knocks: readonly NegativeProbe[] = []
  const result = await underLoad(soak.places, POD_LOAD, async () => {
    const knocking = startKnocks(soak.places, 'node/c', ['a-1', 'b-1'])
    await course.change()
    knocks = (await knocking.stop()).knocks
  })
  writeFileSync(join(kept, 'traffic.json'), JSON.stringify(result))
  const how = `addresses are held by who has them, tables as a fresh compile has them, after every ${COMPARED_EVERY} and in the end`
  yield { name: `${history.count} steps, ${soak.tally()}: ${how}`, faults: [] }
  const stepAt = (time: number): string => history.at(time)
  yield* trafficChecks(result, { ways: POD_WAYS, load: POD_LOAD, stepAt })
  yield closedCheck(knocks, stepAt)
  yield { name: 'no address was given to one while another had it', faults: soak.uniqueness.faults }
  yield* await soak.probes.checks()
  yield* course.endChecks((line) => textAt(line, 'event') === 'source.disconnected')
}
