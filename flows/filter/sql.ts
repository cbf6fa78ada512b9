// SPDX-License-Identifier: Apache-2.0
/** A filter as a condition on the table of keys. Layer: flows. */
import { isTextMatch, TEXT_FIELDS, type Aliases, type Filter, type PolicyMatch, type TextMatch } from './filter.ts'

/** With question marks for its values. */
export interface Condition {
  readonly text: string
  readonly values: readonly (string | number)[]
}

const ALWAYS: Condition = { text: 'true', values: [] }

/** Of `store.keys`; the same as `matches` of each. */
export function filterSql(filter: Filter): Condition {
  const texts = TEXT_FIELDS.map(({ list, aliases, column }) => anyOf(filter[list], (match) => textSql(column, match, aliases)))
  const { reporter } = filter
  return allOf([
    ...texts,
    anyOf(filter.destPorts, (port) => equal('dest_port', port)),
    anyOf(filter.actions, (action) => equal('action', action)),
    ofHits(anyOf(filter.policies, policySql)),
    reporter === undefined ? ALWAYS : equal('reporter', reporter),
    ofHits(anyOf(filter.pendingActions, (action) => allOf([{ text: 'pending', values: [] }, equal('action', action)]))),
  ])
}

function textSql(column: string, match: TextMatch, aliases: Aliases): Condition {
  const called = aliases.filter(([, alias]) => isTextMatch(match, alias)).map(([value]) => equal(column, value))
  const own = match.isFuzzy ? { text: `contains(${column}, ?)`, values: [match.value] } : equal(column, match.value)
  return join(' OR ', [own, ...called])
}

/** Of one hit. */
export function policySql({ kind, tier, namespace, name, action }: PolicyMatch): Condition {
  const part = (column: string, match: TextMatch | undefined): Condition => (match === undefined ? ALWAYS : textSql(column, match, []))
  return allOf([
    kind === undefined ? ALWAYS : equal('kind', kind),
    part('tier', tier),
    part('namespace', namespace),
    part('name', name),
    action === undefined ? ALWAYS : equal('action', action),
  ])
}

/** Of one hit at least. */
function ofHits(hit: Condition): Condition {
  if (hit === ALWAYS) return ALWAYS
  return { text: `id IN (SELECT key FROM store.hits WHERE ${hit.text})`, values: hit.values }
}

function equal(column: string, value: string | number): Condition {
  return { text: `${column} = ?`, values: [value] }
}

function anyOf<T>(list: readonly T[], condition: (one: T) => Condition): Condition {
  return list.length === 0 ? ALWAYS : join(' OR ', list.map(condition))
}

function allOf(conditions: readonly Condition[]): Condition {
  const that = conditions.filter((condition) => condition !== ALWAYS)
  return that.length === 0 ? ALWAYS : join(' AND ', that)
}

function join(by: string, conditions: readonly Condition[]): Condition {
  const text = conditions.map((condition) => condition.text).join(by)
  return { text: `(${text})`, values: conditions.flatMap((condition) => condition.values) }
}
