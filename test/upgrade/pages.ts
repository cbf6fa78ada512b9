// SPDX-License-Identifier: Apache-2.0
/** Tables of pages about upgrades, as tests compare them with the code. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'

export function pageText(name: string): string {
  return readFileSync(join(packageRoot(), 'docs', name), 'utf8')
}

/** Cells of each row below a heading, of rows that begin with `first`. */
export function rowsBelow(page: string, heading: string, first = '| `'): readonly (readonly string[])[] {
  const [, level = ''] = /^(#+) /.exec(heading) ?? []
  const section = page.split(`\n${heading}\n`)[1]?.split(new RegExp(`\n#{2,${level.length}} `))[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith(first))
  return rows.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** Each code of a cell. */
export function codesIn(cell: string | undefined): readonly string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}
