// SPDX-License-Identifier: Apache-2.0
/** How much each policy, or each of its rules, has let through, denied and passed on. Layer: flows. */
import { FLOW_ACTIONS, HIT_KINDS, REPORTERS, type FlowAction, type PolicyRef, type Reporter } from '#lib/flows/flow.ts'
import { NO_FILTER, type PolicyMatch } from '../filter/filter.ts'
import { policySql } from '../filter/sql.ts'
import { numberOf, textOf, type Cells, type Sql } from '../store/database.ts'
import { liveOf, rowsOf, SUMS, type Range } from './range.ts'
import { oneOf, type Ask } from './records.ts'

export const MEASURES = ['PacketCount', 'ByteCount', 'LiveConnectionCount'] as const
export type Measure = (typeof MEASURES)[number]

export interface StatisticsAsked {
  readonly range: Range
  readonly measure: Measure
  readonly byRule: boolean
  readonly policy: PolicyMatch
  /** each window by itself */
  readonly isSeries: boolean
}

export type Amounts = Readonly<Record<FlowAction, { readonly in: number; readonly out: number }>>

export interface PolicyAmounts {
  readonly policy: PolicyRef
  /** undefined: of all rules and directions together */
  readonly rule: { readonly index: number; readonly action: FlowAction; readonly reporter: Reporter } | undefined
  /** one; of a series one of each window that has any */
  readonly points: readonly { readonly start: number; readonly amounts: Amounts }[]
}

/** What comes to a destination and what a source sends. Of live connections each end has one column. */
const COLUMNS: Readonly<Record<Measure, readonly [incoming: string, outgoing: string]>> = {
  PacketCount: ['packets_in', 'packets_out'],
  ByteCount: ['bytes_in', 'bytes_out'],
  LiveConnectionCount: [`CASE reporter WHEN 'Dst' THEN live ELSE 0 END`, `CASE reporter WHEN 'Src' THEN live ELSE 0 END`],
}

/** The end of a tier is of the policy for which the tier is asked. Staged policies are in the pending list alone; the
 * others are not counted there again. */
const HITS = `SELECT key, action, rule,
    ${['kind', 'tier', 'namespace', 'name'].map((part) => `CASE kind WHEN 'EndOfTier' THEN trigger_${part} ELSE ${part} END AS ${part}`).join(', ')}
  FROM store.hits
  WHERE (kind <> 'EndOfTier' OR trigger_kind IS NOT NULL)
    AND (NOT pending OR starts_with(kind, 'Staged') OR starts_with(coalesce(trigger_kind, ''), 'Staged'))`

/** In the order of policies. */
export async function statistics(ask: Ask, asked: StatisticsAsked): Promise<readonly PolicyAmounts[]> {
  const sums = amountsIn(asked)
  const policy = policySql(asked.policy)
  const [incoming, outgoing] = COLUMNS[asked.measure]
  const rule = asked.byRule ? 'h.rule, h.action, reporter' : `NULL, NULL, NULL`
  const amounts = FLOW_ACTIONS.flatMap((action) =>
    [incoming, outgoing].map((column) => `sum(CASE h.action WHEN '${action}' THEN ${column} ELSE 0 END)::DOUBLE`),
  )
  const rows = await ask({
    text: `SELECT kind, h.tier, h.namespace, h.name, ${rule}, ${asked.isSeries ? 's.start' : '0'}, ${amounts.join(', ')}
      FROM ${sums.text} s JOIN store.keys k ON k.id = s.key JOIN (SELECT * FROM (${HITS}) WHERE ${policy.text}) h ON h.key = s.key
      GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 2, 1, 3, 4, 5, 6, 7, 8`,
    values: [...sums.values, ...policy.values],
  })
  const groups = new Map<string, { readonly first: Cells; readonly points: PolicyAmounts['points'][number][] }>()
  for (const row of rows) {
    const name = JSON.stringify(row.slice(0, 7).map(String))
    let group = groups.get(name)
    if (group === undefined) groups.set(name, (group = { first: row, points: [] }))
    group.points.push({ start: numberOf(row[7]), amounts: amountsOf(row.slice(8)) })
  }
  return [...groups.values()].map(({ first, points }) => {
    const [kind, tier, namespace, name, index, action, reporter] = first
    return {
      policy: { kind: oneOf(HIT_KINDS, kind), tier: textOf(tier), namespace: textOf(namespace), name: textOf(name) },
      rule: asked.byRule
        ? { index: numberOf(index), action: oneOf(FLOW_ACTIONS, action), reporter: oneOf(REPORTERS, reporter) }
        : undefined,
      points,
    }
  })
}

/** Of each key, and of a series in each window. */
function amountsIn({ range, measure, isSeries }: StatisticsAsked): Sql {
  const rows = rowsOf(range, NO_FILTER)
  if (measure === 'LiveConnectionCount') return liveOf(rows, isSeries ? 'start' : '')
  const by = isSeries ? 'key, start' : 'key'
  const sums = SUMS.map((count) => `sum(${count}) AS ${count}`)
  return { text: `(SELECT ${by}, ${sums.join(', ')} FROM ${rows.text} GROUP BY ${by})`, values: rows.values }
}

function amountsOf(cells: Cells): Amounts {
  const [allowedIn = 0, allowedOut = 0, deniedIn = 0, deniedOut = 0, passedIn = 0, passedOut = 0] = cells.map(numberOf)
  return {
    Allow: { in: allowedIn, out: allowedOut },
    Deny: { in: deniedIn, out: deniedOut },
    Pass: { in: passedIn, out: passedOut },
  }
}
