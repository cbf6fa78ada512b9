// SPDX-License-Identifier: Apache-2.0
/** What needs no root: `make check`. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command, vitest } from './runner/commands.ts'
import { BUSY } from './runner/schedule/scheduler.ts'
import { runStages, type Part } from './runner/stages.ts'

const make =
  (target: string): Part =>
  (print) =>
    command(print, ['make', '--no-print-directory', target])

const folder = mkdtempSync(join(tmpdir(), 'netplane-check-'))
try {
  process.exitCode = await runStages([
    { name: 'unit', weight: BUSY, parts: [(print) => vitest(print, { project: 'unit', folder })] },
    { name: 'lint', weight: BUSY, parts: [make('lint-cached')] },
    { name: 'types', weight: BUSY, parts: [make('types')] },
  ])
} finally {
  rmSync(folder, { recursive: true })
}
