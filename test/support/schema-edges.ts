// SPDX-License-Identifier: Apache-2.0
/** Every field of a schema alone, with what is required beside it: at its bounds, each word, each form that it may
 * have. The same each time. Layer: test. */
import fc from 'fast-check'
import type { Schema } from '#lib/base/schema.ts'
import { formOf, isRefused } from './from-schema.ts'

/** One value of the whole, and the field that it is about. */
export interface Edge {
  /** "ingress[].source.nets[]"; "" is the whole */
  readonly path: string
  readonly value: unknown
}

/** What a field needs beside it that its schema does not ask for: in objects at `at`, for fields at `of`. */
export interface Beside {
  readonly of: RegExp
  readonly at: RegExp
  readonly are: Readonly<Record<string, unknown>>
}

interface Place {
  readonly path: string
  readonly beside: readonly Beside[]
}

/** Longer lists and texts say nothing more. */
const LONGEST = 1100
/** Of each form of a text. */
const SAMPLES = 12

/** The first one is what is put there where it is only required. */
export function edgesOf(schema: Schema, beside: readonly Beside[] = []): readonly Edge[] {
  return edgesAt(schema, { path: '', beside })
}

/** The texts, one after the other, in each field that is an address or a prefix. */
export function addressEdges(schema: Schema, texts: readonly string[], beside: readonly Beside[] = []): readonly Edge[] {
  const paths = addressPaths(schema, '')
  return edgesOf(withAddresses(schema, texts), beside).filter(({ path }) => paths.includes(path))
}

function addressPaths(schema: Schema, path: string): readonly string[] {
  if (isAddress(schema)) return [path]
  const fields = Object.entries(schema.properties ?? {}).map(([key, field]) => [path === '' ? key : `${path}.${key}`, field] as const)
  const parts = schema.items === undefined ? fields : [...fields, [`${path}[]`, schema.items] as const]
  return parts.flatMap(([at, part]) => addressPaths(part, at))
}

/** Without fields that neither have addresses nor must be there. */
function withAddresses(schema: Schema, texts: readonly string[]): Schema {
  if (isAddress(schema)) return { type: 'string', enum: texts }
  const { properties, items, required = [] } = schema
  const kept = Object.entries(properties ?? {}).filter(([key, field]) => required.includes(key) || addressPaths(field, key).length > 0)
  const fields = kept.map(([key, field]) => [key, withAddresses(field, texts)] as const)
  return {
    ...schema,
    ...(properties !== undefined && { properties: Object.fromEntries(fields) }),
    ...(items !== undefined && { items: withAddresses(items, texts) }),
  }
}

function isAddress({ anyOf = [] }: Schema): boolean {
  return anyOf.some(({ format }) => format === 'ipv6' || format === 'cidr')
}

function edgesAt(schema: Schema, place: Place): readonly Edge[] {
  const { path } = place
  const plain = (...values: readonly unknown[]): Edge[] => values.map((value) => ({ path, value }))
  if (schema.enum !== undefined) return plain(...schema.enum)
  if (schema['x-kubernetes-int-or-string'] === true) return plain(...numbers(schema), ...texts(schema))
  switch (schema.type) {
    case 'object':
      return objectEdges(schema, place)
    case 'array':
      return arrayEdges(schema, place)
    case 'boolean':
      return plain(true, false)
    case 'integer':
      return plain(...numbers(schema))
    case 'number':
      return plain(...numbers(schema), 0.5, -1.25, 1e300)
    default:
      return plain(...texts(schema))
  }
}

function objectEdges({ properties = {}, required = [], additionalProperties }: Schema, { path, beside }: Place): readonly Edge[] {
  if (additionalProperties !== undefined) {
    const values = edgesAt(additionalProperties, { path: `${path}{}`, beside })
    return [{ path, value: {} }, ...values.map((edge) => ({ ...edge, value: { a: edge.value } }))]
  }
  const known = Object.entries(properties).filter(([, schema]) => !isRefused(schema))
  const edges = new Map(known.map(([key, schema]) => [key, edgesAt(schema, { path: path === '' ? key : `${path}.${key}`, beside })]))
  const least: Readonly<Record<string, unknown>> = Object.fromEntries(required.map((key) => [key, edges.get(key)?.[0]?.value]))
  const others = (of: string): Readonly<Record<string, unknown>> => {
    const found = beside.filter((one) => one.at.test(path) && one.of.test(of))
    return found.reduce((all, { are }) => ({ ...all, ...are }), least)
  }
  const each = [...edges].flatMap(([key, values]) =>
    values.map((edge) => ({ ...edge, value: { ...others(edge.path), [key]: edge.value } })),
  )
  return [{ path, value: others(path) }, ...each]
}

function arrayEdges({ items = {}, minItems = 0, maxItems = 2 }: Schema, { path, beside }: Place): readonly Edge[] {
  const edges = edgesAt(items, { path: `${path}[]`, beside })
  const many = (count: number): unknown => Array.from({ length: count }, () => edges[0]?.value)
  const alone = edges.map((edge) => ({ ...edge, value: Array.from({ length: Math.max(1, minItems) }, () => edge.value) }))
  const bounds = [minItems, Math.min(maxItems, LONGEST)].map((count) => ({ path, value: many(count) }))
  return minItems === 0 ? [...bounds, ...alone] : [...alone, ...bounds]
}

function numbers({ minimum = -1, maximum = 2_147_483_647 }: Schema): readonly number[] {
  return [...new Set([maximum, minimum, Math.min(maximum, Math.max(minimum, 0))])]
}

function texts(schema: Schema): readonly unknown[] {
  const { example, anyOf, pattern, minLength = 0, maxLength = 255 } = schema
  const ofForms = [...(pattern === undefined ? [] : [schema]), ...(anyOf ?? [])].flatMap((form) =>
    fc.sample(formOf(form), { seed: 1, numRuns: SAMPLES }),
  )
  if (ofForms.length > 0) return [...(example === undefined ? [] : [example]), ...ofForms]
  // of what no pattern describes only the length is known, and one that is good
  const lengths = [Math.max(minLength, 1), minLength, Math.min(maxLength, LONGEST)].map((length) => 'a'.repeat(length))
  return [...(example === undefined ? [] : [example]), ...only(schema), ...new Set(lengths), ' ', 'ä b']
}

/** The value that a field may have which is refused otherwise. */
function only({ 'x-kubernetes-validations': conditions = [] }: Schema): readonly string[] {
  return conditions.flatMap(({ rule }) => /^self == '(.*)'$/.exec(rule)?.[1] ?? [])
}
