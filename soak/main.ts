#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** `make soak`: ten minutes of random changes under live traffic, then everything is compared. Layer: soak.
 *
 * --minutes M (or MINUTES=M), --seed S (or SEED=S): the same steps again. Exit code 0 when everything held. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { underLoad } from '../lab/load.ts'
import { downCheck, holdingsCheck, leakCheck, logCheck, restartCheck, trafficChecks, type Check } from './checks.ts'
import { SoakError } from './errors.ts'
import { LOAD } from './flows.ts'
import { History } from './history.ts'
import { markChecks } from './mark-checks.ts'
import { underMarks, type MarkedResult } from './marked-traffic.ts'
import type { Holdings } from './node.ts'
import { KEPT, Soak } from './soak.ts'
import { LAST, Plan } from './steps.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } })
const minutes = Number(values.minutes ?? process.env['MINUTES'] ?? 10)
const seed = Number(values.seed ?? process.env['SEED'] ?? Math.floor(Math.random() * 0x1_0000_0000))
/** Steps after which everything is compared. */
const COMPARED_EVERY = 25
/** One of our own, so that two soaks do not meet. */
const name = `soak${process.pid}`
const history = new History()
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Step after step until the time is over. Throws SoakError for tables that are not as wanted. */
async function change(soak: Soak, plan: Plan): Promise<Holdings[]> {
  const survivor = soak.node(plan.survivor)
  const samples: Holdings[] = []
  const end = systemClock.now() + minutes * 60_000
  let told = systemClock.now()
  while (systemClock.now() < end) {
    const step = plan.next()
    history.add(step)
    await soak.perform(step)
    await systemClock.sleep(plan.pause(), stop.signal)
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

async function* checks(soak: Soak): AsyncGenerator<Check> {
  const plan = new Plan(seed)
  await soak.settle()
  const before = new Map<string, readonly string[]>()
  for (const node of soak.nodes) before.set(node.name, await node.belongings())
  say(`.. ${minutes} minutes of changes, seed ${seed}; the agent of node ${plan.survivor} is never killed`)
  let samples: readonly Holdings[] = []
  let marked: MarkedResult | undefined
  const result = await underLoad(soak.lab, LOAD, async () => {
    marked = await underMarks(soak.lab, async () => {
      samples = await change(soak, plan)
    })
  })
  const how = `tables and settings of programs as a fresh compile has them, after every ${COMPARED_EVERY} and in the end`
  yield { name: `${history.count} steps: ${how}`, faults: [] }
  const stepAt = (time: number): string => history.at(time)
  yield* trafficChecks(result, stepAt)
  if (marked !== undefined) {
    writeFileSync(join(KEPT, 'marked.json'), JSON.stringify({ marked, written: history.truths }))
    yield* markChecks(marked, { written: history.truths, stepAt })
  }
  yield await restartCheck(soak)
  yield holdingsCheck(plan.survivor, samples, soak.node(plan.survivor).holdings())
  yield await leakCheck(soak, before)
  yield logCheck(soak.nodes)
  yield await downCheck(soak)
}

async function main(): Promise<number> {
  say(`soak: seed ${seed}, ${minutes} minutes`)
  rmSync(KEPT, { recursive: true, force: true })
  mkdirSync(KEPT, { recursive: true })
  let passed = 0
  const failed: string[] = []
  try {
    await using soak = await Soak.up(name, (text) => say(`.. ${text}`))
    for await (const check of checks(soak)) {
      say(`${check.faults.length === 0 ? 'ok    ' : 'FAILED'}  ${check.name}`)
      for (const fault of check.faults) say(`          ${fault}`)
      if (check.faults.length === 0) passed++
      else failed.push(check.name)
    }
  } catch (thrown) {
    failed.push(errorText(thrown))
    say(`FAILED  ${errorText(thrown)}`)
    for (const fault of thrown instanceof SoakError ? thrown.faults.slice(0, 40) : []) say(`          ${fault}`)
  }
  if (failed.length > 0) {
    say(`the last steps before:`)
    for (const line of history.last(15)) say(`          ${line}`)
    say(`the same again: make soak SEED=${seed} MINUTES=${minutes}; all steps and the agents' logs are in build/soak`)
  }
  history.write(join(KEPT, 'steps.txt'))
  say(`soak: ${passed} passed, ${failed.length} failed`)
  return failed.length === 0 ? 0 : 1
}

process.exitCode = await main()
