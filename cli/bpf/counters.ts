// SPDX-License-Identifier: Apache-2.0
/** `bpf counters`: drops by reason and what else the programs count, by the names that metrics have. Layer: cli
 * (pure). */
import type { Report } from '../report.ts'
import type { CounterValue } from '../map-tables.ts'

export const counters: Report<CounterValue> = {
  heading: ['KIND', 'NAME', 'COUNT'],
  async *records({ tables, all }) {
    yield await Promise.resolve(tables.counters().filter(({ value }) => all || value > 0))
  },
  lines: ({ kind, name, value }) => [[kind, name, String(value)]],
}
