// SPDX-License-Identifier: Apache-2.0
/** Values that a schema allows, and some that it nearly does. Layer: test. */
import fc from 'fast-check'
import { isObject } from '#lib/base/object.ts'
import type { Constraint, Schema } from '#lib/base/schema.ts'

/** Most of them hold every constraint that is not between fields. */
export function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema['x-kubernetes-int-or-string'] === true)
    return fc.oneof(fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 100 }), textOf(schema))
  switch (schema.type) {
    case 'object':
      return objectOf(schema)
    case 'array':
      return fc.array(valueOf(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 2, 2) })
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -10, max: schema.maximum ?? 1000 })
    case 'number':
      return fc.oneof(fc.integer({ min: -10, max: 1000 }), fc.constantFrom(0.5, -1.25))
    default:
      return textOf(schema)
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: Schema): fc.Arbitrary<unknown> {
  if (additionalProperties !== undefined)
    return fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.stringMatching(/^[a-z]{0,8}$/), { maxKeys: 3 })
  const known = Object.entries(properties).filter(([, schema]) => !isRefused(schema))
  const values = Object.fromEntries(known.map(([key, schema]) => [key, valueOf(schema)]))
  const optional = known.map(([key]) => key).filter((key) => !required.includes(key))
  // few at a time: all of them together would break most rules
  return fc.subarray(optional, { maxLength: Math.min(3, optional.length) }).chain((some) => {
    const chosen = [...required, ...some].flatMap((key) => (values[key] === undefined ? [] : [[key, values[key]] as const]))
    return fc.record(Object.fromEntries(chosen))
  })
}

export function isRefused(schema: Schema): boolean {
  return schema['x-kubernetes-validations']?.some(({ rule }) => rule === 'false') === true
}

function textOf(schema: Schema): fc.Arbitrary<unknown> {
  const { enum: words, example, anyOf, minLength = 0, maxLength = 12 } = schema
  if (words !== undefined) return fc.constantFrom(...words)
  if (example !== undefined) return fc.constant(example)
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => formOf(one)))
  if (schema.pattern !== undefined) return formOf(schema).filter((text) => text.length <= maxLength || maxLength === 12)
  return fc.stringMatching(/^[a-z][a-z0-9-]{0,10}[a-z]$/).filter((text) => text.length >= minLength)
}

export function formOf({ format, pattern = '' }: Constraint): fc.Arbitrary<string> {
  if (format === 'ipv6') return fc.ipV6().filter((text) => new RegExp(pattern).test(text))
  if (format === 'cidr') return fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })).map(([addr, bits]) => `${addr}/${bits}`)
  return fc.stringMatching(new RegExp(pattern))
}

const JUNK: readonly unknown[] = [
  '',
  'x',
  '-',
  0,
  -1,
  65_536,
  1.5,
  true,
  {},
  [],
  ['x'],
  '10.0.0.0/33',
  '::ffff:1.2.3.4',
  '010.0.0.1/8',
  '9000:80',
  'a ==',
]

/** The same with one leaf, somewhere, replaced by something else. */
export function spoilt(of: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(of, fc.nat(), fc.constantFrom(...JUNK)).map(([value, at, junk]) => {
    const leaves = count(value)
    return leaves === 0 ? value : replace(value, { left: at % leaves, junk })
  })
}

function count(value: unknown): number {
  if (Array.isArray(value) || isObject(value)) return Object.values(value).reduce<number>((sum, part) => sum + count(part), 0)
  return 1
}

function replace(value: unknown, of: { left: number; readonly junk: unknown }): unknown {
  if (Array.isArray(value)) return value.map((part: unknown) => replace(part, of))
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replace(part, of)]))
  return of.left-- === 0 ? of.junk : value
}
