// SPDX-License-Identifier: Apache-2.0
/** What is lost when agents die and when ports collide, beside the same without; writes its figures to standard output as JSON. Layer: bench. */
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/package.ts'
import { killAgents } from '../../lab/kill.ts'
import { Lab } from '../../lab/lab.ts'
import { lossesOf, underLoad } from '../../lab/load.ts'
import { LOAD, RESOURCES } from './cluster.ts'
import { collide } from './collision.ts'
import type { LossFigure, Losses } from './figure.ts'

const LAB = 'benchloss'

async function kill(lab: Lab, runs: number): Promise<LossFigure> {
  let lasted = 0
  const fault = await lossesUnder(lab, async () => {
    const start = systemClock.now()
    await killAgents(lab, runs)
    lasted = systemClock.now() - start
  })
  const control = await lossesUnder(lab, () => systemClock.sleep(lasted, new AbortController().signal))
  return { id: 'agent-kill', runs, fault, control }
}

async function lossesUnder(lab: Lab, happen: () => Promise<void>): Promise<Losses> {
  const result = await underLoad(lab, LOAD, happen)
  const { lost, refused } = lossesOf(result)
  if (result.streams.length === 0 || result.requests.some(({ ok }) => ok === 0)) throw new InternalError('there was no load to lose from')
  return { lost, refused, socketDrops: result.socketDrops, softnetDrops: result.softnetDrops }
}

async function main(argv: readonly string[]): Promise<void> {
  const [kills = '20', tries = '10'] = argv
  await Lab.remove(LAB)
  await using lab = await Lab.up({ name: LAB, resources: join(packageRoot(), RESOURCES) })
  const figures = [await kill(lab, Number(kills)), await collide(lab, Number(tries))]
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

await main(process.argv.slice(2))
