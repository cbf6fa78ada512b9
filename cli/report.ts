// SPDX-License-Identifier: Apache-2.0
/** Records on their way to the terminal: as a table, or as a JSON array. Layer: cli (pure). */
import { growingTable } from '#lib/base/table.ts'
import type { Filter } from './filter.ts'
import type { RuleNames } from './rules.ts'
import type { Tables } from './map-tables.ts'

/** What a command finds on the node, and what was asked of it. */
export interface Question {
  readonly tables: Tables
  readonly interfaceName: (index: number) => string
  /** ms of the programs' clock */
  readonly nowMs: number
  readonly names: RuleNames
  readonly filter: Filter
  readonly all: boolean
}

/** `R` is plain data, which --json shows as it is. */
export interface Report<R> {
  readonly heading: readonly string[]
  /** in parts of any size */
  readonly records: (question: Question) => AsyncIterable<readonly R[]>
  /** one record may take several */
  readonly lines: (record: R) => readonly (readonly string[])[]
}

export type Printer = (question: Question, json: boolean) => AsyncGenerator<string>

/** Text in pieces, whole lines each: at no time is more than a part or a page in memory. */
export function printerOf<R>(report: Report<R>): Printer {
  return (question, json) => (json ? asJson(report.records(question)) : asTable(report, question))
}

/** lines that are aligned with each other; from page to page columns only grow */
const PAGE = 2000

async function* asTable<R>({ heading, records, lines }: Report<R>, question: Question): AsyncGenerator<string> {
  const table = growingTable()
  let page = [heading]
  for await (const part of records(question)) {
    page.push(...part.flatMap(lines))
    if (page.length < PAGE) continue
    yield `${table(page)}\n`
    page = []
  }
  if (page.length > 0) yield `${table(page)}\n`
}

async function* asJson<R>(parts: AsyncIterable<readonly R[]>): AsyncGenerator<string> {
  let before = '['
  for await (const part of parts) {
    const texts = part.map((record) => JSON.stringify(record))
    if (texts.length === 0) continue
    yield `${before}\n${texts.join(',\n')}`
    before = ','
  }
  yield before === '[' ? '[]\n' : '\n]\n'
}
