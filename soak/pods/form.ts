// SPDX-License-Identifier: Apache-2.0
/** The form whose agents read a real API server and give pods their addresses: pods come and go, and whoever serves them is killed. Layer: soak. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { underLoad } from '../../lab/load.ts'
import type { Knock } from '../../lab/tools/pulses.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { downCheck, holdingsCheck, leakCheck, logCheck, restartCheck, trafficChecks, type Check } from '../checks.ts'
import { COMPARED_EVERY, type SoakRun } from '../form.ts'
import { closedCheck } from '../mark-checks.ts'
import { startKnocks } from '../marked-traffic.ts'
import type { Holdings } from '../node.ts'
import { POD_LOAD, POD_WAYS } from './cluster.ts'
import { PodSoak } from './pod-soak.ts'
import { PodPlan, type PodStep } from './steps.ts'

/** Step after step until the time is over. Throws SoakError for what is not as it should be. */
async function change(soak: PodSoak, plan: PodPlan, { history, minutes, say, signal }: SoakRun<PodStep>): Promise<Holdings[]> {
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
      say(
        `.. ${history.count} steps: ${history.summary()}; ${soak.calls()}; the agent of ${plan.survivor} has ${samples.at(-1)?.residentMb ?? 0} MB`,
      )
    }
  }
  for (const step of plan.last()) await soak.perform(step)
  await soak.settle()
  return [...samples, survivor.holdings()]
}

export async function* podsForm(run: SoakRun<PodStep>): AsyncGenerator<Check> {
  const { name, kept, history, minutes, seed, say } = run
  await using soak = await PodSoak.up({ name, kept, say: (text) => say(`.. ${text}`) })
  const plan = new PodPlan(seed)
  await soak.begin()
  await soak.settle()
  const before = new Map<string, readonly string[]>()
  for (const node of soak.nodes) before.set(node.name, await soak.belongings(node))
  say(`.. ${minutes} minutes of changes, seed ${seed}; the agent of node ${plan.survivor} is never killed`)
  let samples: readonly Holdings[] = []
  let knocks: readonly Knock[] = []
  const result = await underLoad(soak.places, POD_LOAD, async () => {
    const knocking = startKnocks(soak.places, 'node/c', ['a-1', 'b-1'])
    samples = await change(soak, plan, run)
    knocks = (await knocking.stop()).knocks
  })
  writeFileSync(join(kept, 'traffic.json'), JSON.stringify(result))
  const how = `addresses are held by who has them, tables as a fresh compile has them, after every ${COMPARED_EVERY} and in the end`
  yield { name: `${history.count} steps, ${soak.calls()}: ${how}`, faults: [] }
  const stepAt = (time: number): string => history.at(time)
  yield* trafficChecks(result, { ways: POD_WAYS, load: POD_LOAD, stepAt })
  yield closedCheck(knocks, stepAt)
  yield { name: 'no address was given to one while another had it', faults: soak.uniqueness.faults }
  yield* await soak.probes.checks()
  yield await restartCheck(soak)
  yield holdingsCheck(plan.survivor, samples, soak.node(plan.survivor).holdings())
  yield await leakCheck(soak, before)
  yield logCheck(soak.nodes, isOurs)
  yield await downCheck(soak)
}

/** The API server was killed; and the device of a pod that is taken away may go before its settings are made. */
function isOurs(line: unknown): boolean {
  if (textAt(line, 'event') === 'source.unavailable') return true
  const reasons = listAt(line, 'reasons')
  return (
    textAt(line, 'part') === 'sysctls' && reasons.every((reason) => /^net\/ipv[46]\/conf\/npl[0-9a-f]+\/\w+: ENOENT/.test(String(reason)))
  )
}
