// SPDX-License-Identifier: Apache-2.0
/** What needs no root: `make check`. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, vitest } from './runner/commands.ts'
import { runStages, type Part } from './runner/stages.ts'

const make =
  (target: string): Part =>
  (print) =>
    command(print, ['make', '--no-print-directory', target])

const folder = mkdtempSync(join(tmpdir(), 'netplane-check-'))
try {
  process.exitCode = await runStages([
    { name: 'unit', inLanes: true, parts: [(print) => vitest(print, { project: 'unit', folder })] },
    { name: 'lint', inLanes: true, parts: [make('lint-cached')] },
    { name: 'types', inLanes: true, parts: [make('types')] },
  ])
} finally {
  rmSync(folder, { recursive: true })
}
