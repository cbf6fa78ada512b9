// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [STAGE …]` runs these only, such as "unit" or "loss", and `run.ts STAGE … FILE …` no more than these files of
 * theirs. `run.ts all` runs what is outside of the gate as well, and `run.ts part NAME` one part of that. What failed
 * is named at the end, and the last line is `N passed, M failed, K skipped`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chosenOf } from './runner/schedule/chosen.ts'
import { needsRoot, stagesIn } from './gate.ts'
import { removeLeftovers } from './runner/leftovers.ts'
import { DURATIONS, keepMeasured, readDurations } from './runner/schedule/durations.ts'
import { recordRun } from './runner/outside/parts.ts'
import { runStages } from './runner/stages.ts'
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
    const { chosen, part } = chosenOf(stages, wanted)
    const record = part && ((result: string) => recordRun(part, result, new Date().toISOString().slice(0, 10)))
    return await runStages(chosen, { durations, keep: keepMeasured, ...(record === undefined ? {} : { record }) })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const wanted = process.argv.slice(2)
const hasWorld = needsRoot !== undefined || isInOwnWorld()
process.exitCode = await (hasWorld ? main(wanted) : inOwnWorld([process.execPath, '--conditions=source', 'test/run.ts', ...wanted]))
