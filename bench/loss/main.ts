// SPDX-License-Identifier: Apache-2.0
/** What is lost when agents die or change their version, tables grow, ports collide, other programs remove what is
 * ours, and kube-proxy is replaced, beside the same without; writes its figures to standard output as JSON.
 * Layer: bench. */
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { killAgents } from '../../lab/processes/kill.ts'
import { Lab } from '../../lab/lab.ts'
import { builtPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { LOAD, RESOURCES } from './cluster.ts'
import { collide } from './collision.ts'
import type { LossFigure } from './result.ts'
import { grow } from './growth.ts'
import { removeAll } from './foreign-removal.ts'
import { switchFrom } from './proxy-switch.ts'
import { upgrade } from './upgrade.ts'
import { lossesUnder, rest, timed } from './under.ts'

const LAB = 'benchloss'
/** there and back */
const UPGRADES = 5

async function kill(lab: Lab, runs: number): Promise<LossFigure> {
  const run = { lasted: 0 }
  const fault = await lossesUnder(lab, LOAD, async () => {
    run.lasted = await timed(() => killAgents(lab, runs))
  })
  return { id: 'agent-kill', runs, fault, control: await lossesUnder(lab, LOAD, () => rest(run.lasted)) }
}

/** Only where Kubernetes' programs are built: that takes longer than all of this. */
async function replace(): Promise<LossFigure[]> {
  const programs = builtPrograms()
  return programs === undefined ? [] : [await switchFrom(['iptables', 'nftables'], programs)]
}

/** How often agents are killed and ports collide by each way; `quick`: without what takes longest. */
async function main(argv: readonly string[]): Promise<void> {
  const [kills = '20', tries = '10', how = 'whole'] = argv
  const resources = join(packageRoot(), RESOURCES)
  await Lab.remove(LAB)
  const figures: LossFigure[] = []
  {
    await using lab = await Lab.up({ name: LAB, resources })
    figures.push(await kill(lab, Number(kills)), await collide(lab, Number(tries)), await removeAll(lab, how === 'quick'))
    if (how !== 'quick') figures.push(await grow(resources, lab))
  }
  figures.push(...(await upgrade(resources, how === 'quick' ? 1 : UPGRADES)))
  if (how !== 'quick') figures.push(...(await replace()))
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

await main(process.argv.slice(2))
