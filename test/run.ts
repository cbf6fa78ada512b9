// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [STAGE …]` runs these only, such as "unit" or "loss"; `run.ts all` runs those too that are outside of the
 * gate. What failed is named at the end, and the last line is `N passed, M failed, K skipped`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needsRoot, stagesIn } from './gate.ts'
import { removeLeftovers } from './runner/leftovers.ts'
import { DURATIONS, keepMeasured, readDurations } from './runner/schedule/durations.ts'
import { runStages, type Stage } from './runner/stages.ts'
import { inOwnWorld, isInOwnWorld } from './runner/world.ts'
import { SEED } from './support/steady/seed.ts'

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  try {
    const stages = stagesIn(folder)
    // for all that draws: tests, fuzzers, the soak
    process.env['SEED'] = String(SEED)
    console.log(`seed ${SEED}`)
    // compiled once for all processes that the run starts
    process.env['NODE_COMPILE_CACHE'] = join(folder, 'compiled')
    if (isInOwnWorld()) for (const left of removeLeftovers()) console.log(`left by another run, and removed: ${left}`)
    const durations = readDurations(readFileSync(DURATIONS, 'utf8'))
    return await runStages(chosenOf(stages, wanted), { durations, keep: keepMeasured })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Without names those of the gate. Throws when a name is none of a stage. */
function chosenOf(stages: readonly Stage[], wanted: readonly string[]): readonly Stage[] {
  if (wanted.length === 0) return stages.filter(({ isOutside }) => isOutside !== true)
  if (wanted.length === 1 && wanted[0] === 'all') return stages
  const chosen = stages.filter(({ name }) => wanted.includes(name))
  if (chosen.length !== wanted.length) throw new Error(`no such stage; there are ${stages.map(({ name }) => name).join(', ')}`)
  return chosen
}

const wanted = process.argv.slice(2)
const hasWorld = needsRoot !== undefined || isInOwnWorld()
process.exitCode = await (hasWorld ? main(wanted) : inOwnWorld([process.execPath, '--conditions=source', 'test/run.ts', ...wanted]))
