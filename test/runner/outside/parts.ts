// SPDX-License-Identifier: Apache-2.0
/** The parts of `make test-all`, and when each ran last: `test/parts.md`. Layer: test. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

export const PARTS = ['soak', 'scale', 'bench', 'kernels', 'fuzz', 'e2e', 'long', 'mutants', 'seeds', 'tidy'] as const
export type PartName = (typeof PARTS)[number]
export const PARTS_PAGE = 'test/parts.md'

export interface PartRun {
  readonly part: PartName
  /** "2026-11-29" */
  readonly date: string
  /** the short name of the commit; "-" where git does not say it */
  readonly commit: string
  /** "3 passed, 0 failed, 0 skipped in 12 s" */
  readonly result: string
}

const NEVER = { date: '-', commit: '-', result: 'not run yet' }

export function isPart(name: string): name is PartName {
  return PARTS.some((part) => part === name)
}

/** The rows of the page, in its order. Throws where a row has other columns, or the name of no part. */
export function readParts(page: string): readonly PartRun[] {
  const [, table = ''] = page.split(/^\|---\|---\|---\|---\|\n/m)
  return table.split('\n').flatMap((line) => {
    if (!line.startsWith('|')) return []
    const [, part = '', date = '', commit = '', result = ''] = /^\| ([a-z0-9]+) \| (\S+) \| (\S+) \| (.+) \|$/.exec(line) ?? []
    if (!isPart(part) || result === '') throw new Error(`${PARTS_PAGE}: ${line}`)
    return [{ part, date, commit, result }]
  })
}

/** The page with this run in the row of its part. Throws as {@link readParts} does. */
export function withRun(page: string, run: PartRun): string {
  const [head = ''] = page.split(/^\|---\|---\|---\|---\|\n/m)
  const before = readParts(page)
  const rows = PARTS.map((part) => (part === run.part ? run : (before.find((row) => row.part === part) ?? { part, ...NEVER })))
  const lines = rows.map(({ part, date, commit, result }) => `| ${part} | ${date} | ${commit} | ${result} |`)
  return [`${head}|---|---|---|---|`, ...lines, ''].join('\n')
}

/** Writes the row of a part that has just run, and says so. */
export function recordRun(part: PartName, result: string, today: string): readonly string[] {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' })
  const commit = status === 0 ? stdout.trim() : NEVER.commit
  writeFileSync(PARTS_PAGE, withRun(readFileSync(PARTS_PAGE, 'utf8'), { part, date: today, commit, result }))
  return [`${PARTS_PAGE} has the result of ${part}: commit it`]
}
