// SPDX-License-Identifier: Apache-2.0
/** Reads what the demo prints. Layer: test (pure). */

export interface DemoTally {
  readonly passed: number
  /** "chapter: line of the table" */
  readonly failures: readonly string[]
  /** the same of lines that do not count, whether they passed or not */
  readonly leftOut: readonly string[]
}

/** Lines of a table that do not count: which begin so, in a chapter whose title begins so. */
export interface Except {
  readonly chapter: string
  readonly rows: readonly string[]
}

export function demoTally(text: string, except: readonly Except[] = []): DemoTally {
  let chapter = 'before the first chapter'
  const passed: string[] = []
  const failures: string[] = []
  const leftOut: string[] = []
  const isLeftOut = (row: string): boolean =>
    except.some((one) => chapter.startsWith(one.chapter) && one.rows.some((start) => row.startsWith(start)))
  for (const line of text.split('\n')) {
    chapter = /^\d+\. (.*)$/.exec(line)?.[1] ?? chapter
    const [, verdict, row] = /^ {3}(ok|FAILED) +(.*)$/.exec(line) ?? []
    if (verdict === undefined || row === undefined) continue
    const place = isLeftOut(row) ? leftOut : verdict === 'ok' ? passed : failures
    place.push(`${chapter}: ${line.trim()}`)
  }
  const counted = passed.length + failures.length + leftOut.length
  return { passed: passed.length, failures: [...failures, ...endFailures(text, counted)], leftOut }
}

/** That it came to its own count, and that this is the one here. */
function endFailures(text: string, counted: number): string[] {
  const [, passed, failed] = /^demo: (\d+) passed, (\d+) failed$/m.exec(text) ?? []
  if (passed === undefined) return ['the demo did not come to its end']
  const own = Number(passed) + Number(failed)
  return own === counted ? [] : [`the demo has ${own} results, and ${counted} of them are understood`]
}
