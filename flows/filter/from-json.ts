// SPDX-License-Identifier: Apache-2.0
/** The filter of a REST request: the value of `filters`. Layer: flows. */
import { isObject } from '#lib/base/object.ts'
import { FLOW_ACTIONS, HIT_KINDS, REPORTERS } from '#lib/flows/flow.ts'
import { FilterError } from './filter-error.ts'
import type { Filter, PolicyMatch, TextMatch } from './filter.ts'

type Fields = Readonly<Record<string, unknown>>

/** Throws FilterError. What it does not know it passes over, as clients of other versions expect. */
export function filterOfJson(text: string): Filter {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new FilterError('filters', 'is no JSON')
  }
  const fields = objectOf(parsed, 'filters')
  const list = <T>(name: string, read: (value: unknown, field: string) => T): readonly T[] => {
    const value = fields[name] ?? []
    if (!Array.isArray(value)) throw new FilterError(`filters.${name}`, 'is no list')
    return value.map((each: unknown, index) => read(each, `filters.${name}[${index}]`))
  }
  return {
    sourceNames: list('source_names', textMatch),
    sourceNamespaces: list('source_namespaces', textMatch),
    destNames: list('dest_names', textMatch),
    destNamespaces: list('dest_namespaces', textMatch),
    protocols: list('protocols', textMatch),
    destPorts: list('dest_ports', portMatch),
    actions: list('actions', (value, field) => oneOf(FLOW_ACTIONS, value, field)),
    policies: list('policies', policyMatch),
    reporter: optional(fields, { name: 'reporter', of: 'filters' }, (value, field) => oneOf(REPORTERS, value, field)),
    pendingActions: list('pending_actions', (value, field) => oneOf(FLOW_ACTIONS, value, field)),
  }
}

function textMatch(value: unknown, field: string): TextMatch {
  const fields = objectOf(value, field)
  const text = fields['value']
  if (typeof text !== 'string') throw new FilterError(`${field}.value`, 'is no text')
  const type = optional(fields, { name: 'type', of: field }, (one, at) => oneOf(['Exact', 'Fuzzy'], one, at))
  return { value: text, isFuzzy: type === 'Fuzzy' }
}

function portMatch(value: unknown, field: string): number {
  const port = objectOf(value, field)['value']
  if (typeof port !== 'number' || !Number.isSafeInteger(port)) throw new FilterError(`${field}.value`, 'is no number')
  return port
}

/** A part that is empty is any, as one that is left out. */
function policyMatch(value: unknown, field: string): PolicyMatch {
  const fields = objectOf(value, field)
  const part = (name: string): TextMatch | undefined => {
    const match = optional(fields, { name, of: field }, textMatch)
    return match?.value === '' ? undefined : match
  }
  return {
    kind: optional(fields, { name: 'kind', of: field }, (one, at) => oneOf(HIT_KINDS, one, at)),
    tier: part('tier'),
    namespace: part('namespace'),
    name: part('name'),
    action: optional(fields, { name: 'action', of: field }, (one, at) => oneOf(FLOW_ACTIONS, one, at)),
  }
}

interface Place {
  readonly name: string
  readonly of: string
}

function optional<T>(fields: Fields, { name, of }: Place, read: (value: unknown, field: string) => T): T | undefined {
  const value = fields[name] ?? undefined
  return value === undefined ? undefined : read(value, `${of}.${name}`)
}

function objectOf(value: unknown, field: string): Fields {
  if (!isObject(value)) throw new FilterError(field, 'is no object')
  return value
}

export function oneOf<T extends string>(names: readonly T[], value: unknown, field: string): T {
  const found = names.find((name) => name === value)
  if (found === undefined) throw new FilterError(field, `${JSON.stringify(value)} is none of ${names.join(', ')}`)
  return found
}
