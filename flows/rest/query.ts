// SPDX-License-Identifier: Apache-2.0
/** What a REST request asks for. Layer: flows. */
import { FilterError } from '../filter/filter-error.ts'
import { filterOfJson, oneOf } from '../filter/from-json.ts'
import { NO_FILTER, type Filter } from '../filter/filter.ts'
import { HINTS, type Hint } from '../query/hints.ts'
import type { Page, Sort } from '../query/list.ts'

export interface FlowsAsked {
  readonly watch: boolean
  readonly from: number
  readonly to: number
  readonly filter: Filter
  readonly sort: Sort
  readonly page: Page
}

export interface HintsAsked {
  readonly hint: Hint
  readonly filter: Filter
  readonly page: Page
}

/** As clients name them, and as columns are called. */
const SORTS: readonly (readonly [string, Sort])[] = [
  ['Time', 'time'],
  ['DestName', 'dest_name'],
  ['DestNamespace', 'dest_namespace'],
  ['DestType', 'dest_type'],
  ['SourceName', 'source_name'],
  ['SourceNamespace', 'source_namespace'],
  ['SourceType', 'source_type'],
]

/** Both throw FilterError, which names the parameter. */
export function flowsAsked(query: string): FlowsAsked {
  const parameters = new URLSearchParams(query)
  const sorts = parameters.getAll('sortBy')
  if (sorts.length > 1) throw new FilterError('sortBy', 'only one')
  return {
    watch: booleanOf(parameters, 'watch'),
    from: numberOf(parameters, 'startTimeGte'),
    to: numberOf(parameters, 'startTimeLt'),
    filter: filterIn(parameters),
    sort: sortOf(sorts[0]),
    page: pageIn(parameters),
  }
}

export function hintsAsked(query: string): HintsAsked {
  const parameters = new URLSearchParams(query)
  return { hint: oneOf(HINTS, parameters.get('type') ?? '', 'type'), filter: filterIn(parameters), page: pageIn(parameters) }
}

function sortOf(name: string | undefined): Sort {
  if (name === undefined) return 'time'
  const known = oneOf(
    SORTS.map(([sort]) => sort),
    name,
    'sortBy',
  )
  return SORTS.find(([sort]) => sort === known)?.[1] ?? 'time'
}

/** Clients escape it twice, or not at all: braces and quotes come as they are. */
function filterIn(parameters: URLSearchParams): Filter {
  const once = parameters.get('filters') ?? ''
  if (once === '') return NO_FILTER
  let text: string
  try {
    text = decodeURIComponent(once.replaceAll('+', ' '))
  } catch {
    throw new FilterError('filters', 'has an escape that is none')
  }
  return filterOfJson(text)
}

function pageIn(parameters: URLSearchParams): Page {
  return { index: countOf(parameters, 'page'), size: countOf(parameters, 'pageSize') }
}

function countOf(parameters: URLSearchParams, name: string): number {
  const count = numberOf(parameters, name)
  if (count < 0 || count > 2 ** 31) throw new FilterError(name, `${count} is none from 0 to 2147483648`)
  return count
}

/** Left out it is 0. */
function numberOf(parameters: URLSearchParams, name: string): number {
  const text = parameters.get(name) ?? ''
  if (text === '') return 0
  if (!/^[+-]?[0-9]{1,15}$/.test(text)) throw new FilterError(name, `${JSON.stringify(text)} is no whole number`)
  return Number(text)
}

function booleanOf(parameters: URLSearchParams, name: string): boolean {
  const text = (parameters.get(name) ?? '').toLowerCase()
  if (['', '0', 'f', 'false'].includes(text)) return false
  if (['1', 't', 'true'].includes(text)) return true
  throw new FilterError(name, `${JSON.stringify(text)} is neither true nor false`)
}
