// SPDX-License-Identifier: Apache-2.0
/** The form whose agents read a directory of manifests: services, policies and settings change at random. Layer: soak. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { underLoad } from '../lab/load.ts'
import { downCheck, holdingsCheck, leakCheck, logCheck, restartCheck, trafficChecks, type Check } from './checks.ts'
import { LOAD, WAYS } from './flows.ts'
import { COMPARED_EVERY, type SoakRun } from './form.ts'
import { markChecks } from './mark-checks.ts'
import { underMarks, type MarkedResult } from './marked-traffic.ts'
import type { Holdings } from './node.ts'
import { Soak } from './soak.ts'
import { LAST, Plan, type Step } from './steps.ts'

/** Step after step until the time is over. Throws SoakError for tables that are not as wanted. */
async function change(soak: Soak, plan: Plan, { history, minutes, say, signal }: SoakRun<Step>): Promise<Holdings[]> {
  const survivor = soak.node(plan.survivor)
  const samples: Holdings[] = []
  const end = systemClock.now() + minutes * 60_000
  let told = systemClock.now()
  while (systemClock.now() < end) {
    const step = plan.next()
    history.add(step)
    await soak.perform(step)
    await systemClock.sleep(plan.pause(), signal)
    if (history.count % COMPARED_EVERY === 0) {
      await soak.settle()
      samples.push(survivor.holdings())
    }
    if (systemClock.now() > told + 30_000) {
      told = systemClock.now()
      say(`.. ${history.count} steps: ${history.summary()}; the agent of ${plan.survivor} has ${samples.at(-1)?.residentMb ?? 0} MB`)
    }
  }
  for (const step of LAST) await soak.perform(step)
  await soak.settle()
  return [...samples, survivor.holdings()]
}

export async function* manifestsForm(run: SoakRun<Step>): AsyncGenerator<Check> {
  const { name, kept, history, minutes, seed, say } = run
  await using soak = await Soak.up({ name, kept, say: (text) => say(`.. ${text}`) })
  const plan = new Plan(seed)
  await soak.settle()
  const before = new Map<string, readonly string[]>()
  for (const node of soak.nodes) before.set(node.name, await soak.belongings(node))
  say(`.. ${minutes} minutes of changes, seed ${seed}; the agent of node ${plan.survivor} is never killed`)
  let samples: readonly Holdings[] = []
  let marked: MarkedResult | undefined
  const result = await underLoad(soak.lab, LOAD, async () => {
    marked = await underMarks(soak.lab, async () => {
      samples = await change(soak, plan, run)
    })
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
  yield await restartCheck(soak)
  yield holdingsCheck(plan.survivor, samples, soak.node(plan.survivor).holdings())
  yield await leakCheck(soak, before)
  yield logCheck(soak.nodes)
  yield await downCheck(soak)
}
