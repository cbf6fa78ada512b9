// SPDX-License-Identifier: Apache-2.0
/** The list of what was unsteady and is not mended yet: `test/unsteady.md`. Layer: test. */

export const LIST = 'test/unsteady.md'
/** More of them are a habit. */
export const MOST_UNSTEADY = 5

export interface Unsteady {
  /** a test file, or the stage of a command */
  readonly name: string
  /** how it failed the first time */
  readonly error: string
  /** "2026-11-29" */
  readonly date: string
}

/** Throws where the page has no table, or a row has not a name, an error and a date. */
export function readUnsteady(page: string): readonly Unsteady[] {
  const [, table] = page.split(/^\|---\|---\|---\|\n/m)
  if (table === undefined) throw new Error(`${LIST}: there is no table of three columns`)
  return table.split('\n').flatMap((line) => {
    if (!line.startsWith('|')) return []
    const [, name, error, date] = /^\| `([^`|]+)` \| (.+) \| (\d{4}-\d\d-\d\d) \|$/.exec(line) ?? []
    if (name === undefined || error === undefined || date === undefined) throw new Error(`${LIST}: ${line}`)
    return [{ name, error: error.replaceAll('\\|', '|'), date }]
  })
}

/** The row for the page. */
export function unsteadyRow({ name, error, date }: Unsteady): string {
  return `| \`${name}\` | ${error.replaceAll('|', '\\|')} | ${date} |`
}
