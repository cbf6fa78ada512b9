// SPDX-License-Identifier: Apache-2.0
/** The schema of FelixConfiguration that an API server checks, from the fields that are obeyed and those that are
 * refused. Layer: agent/config (pure). */
import { refusedSchema } from '#lib/base/schema.ts'
import type { Schema } from '#lib/base/schema.ts'
import { allFields } from './schema.ts'
import { unimplemented } from './unimplemented.ts'

/** Of spec. */
export function felixSchema(): Schema {
  const root: Record<string, Schema> = {}
  const groups = new Map<string, Record<string, Schema>>()
  const put = (name: string, schema: Schema): void => {
    const [group = '', part] = name.split('.')
    if (part === undefined) {
      root[name] = schema
      return
    }
    const properties = groups.get(group) ?? {}
    properties[part] = schema
    groups.set(group, properties)
    root[group] = { type: 'object', description: 'Each is a field of its own.', properties }
  }
  for (const { name, parser, doc, change, fallbackText } of allFields) {
    const usual = fallbackText === '' ? '' : ` Default: ${fallbackText}.`
    put(name, { description: `${doc}${usual}${change === 'live' ? '' : " Takes effect at the agent's next start."}`, ...parser.schema })
  }
  for (const [name, { type, reason, unless }] of unimplemented) put(name, refusedSchema(type, reason, unless))
  return { type: 'object', properties: Object.fromEntries(Object.entries(root).sort(([a], [b]) => (a < b ? -1 : 1))) }
}
