// SPDX-License-Identifier: Apache-2.0
/** The form whose agents read a directory of manifests: services, policies and settings change at random.
 * Layer: soak. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { underLoad } from '../lab/traffic/load.ts'
import { trafficChecks, type Check } from './checks.ts'
import { COMPARED_EVERY, ScenarioRun } from './run.ts'
import { LOAD, WAYS } from './flows.ts'
import type { SoakRun } from './scenario.ts'
import { markChecks } from './marks/mark-checks.ts'
import { underMarks, type MarkedResult } from './marks/marked-traffic.ts'
import { Soak } from './soak.ts'
import { Plan, type Step } from './changes/steps.ts'

export async function* manifestsScenario(run: SoakRun<Step>): AsyncGenerator<Check> {
  const { name, kept, history, seed, say } = run
  await using soak = await Soak.up({ name, kept, say: (text) => say(`.. ${text}`) })
  const course = await ScenarioRun.begin(soak, new Plan(seed), run)
  let marked: MarkedResult | undefined
  const result = await underLoad(soak.lab, LOAD, async () => {
    marked = await underMarks(soak.lab, () => course.change())
  })
  const how = `tables and settings of programs as a fresh compile has them, after every ${COMPARED_EVERY} and in the end`
  yield { name: `${history.count} steps: ${how}`, faults: [] }
  const stepAt = (time: number): string => history.at(time)
  yield* trafficChecks(result, { ways: WAYS, load: LOAD, stepAt })
  if (marked !== undefined) {
    const written = history.taken.flatMap(({ at, step }) => ('truths' in step ? [{ at, truths: step.truths }] : []))
    writeFileSync(join(kept, 'marked.json'), JSON.stringify({ marked, written }))
    yield* markChecks(marked, { written, stepAt })
  }
  yield* course.endChecks()
}
