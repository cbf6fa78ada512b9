// SPDX-License-Identifier: Apache-2.0
/** What the fields of a resource may be, defined once: parsers read by it, and the API server's schema is made of it.
 * Layer: lib/kube. */
import type { Condition, Schema } from '../../base/schema.ts'
import { refusedSchema } from '../../base/schema.ts'
import { asRecord, FieldError, NONE, own, under } from '../parse/fields.ts'
import type { Raw } from '../parse/fields.ts'

/** One value. */
export interface Shape<T> {
  /** throws FieldError */
  readonly read: (value: unknown) => T
  readonly schema: Schema
}

/** A value in its place. */
export interface Field<T, A = undefined> {
  readonly shape: Shape<T>
  readonly doc: string
  readonly required: boolean
  /** what counts where it is missing; throws where it must not be */
  readonly absent: () => A
}

type Fields = Readonly<Record<string, Field<unknown, unknown>>>
type ValueOf<F> = F extends Field<infer T, infer A> ? T | A : never
export type Values<F extends Fields> = { readonly [K in keyof F]: ValueOf<F[K]> }

/** What must hold between fields, in both languages. */
export interface Rule<V> {
  /** the field it is reported at; empty: the whole object */
  readonly path: string
  readonly reason: string
  readonly cel: string
  readonly holds: (values: V) => boolean
}

export interface ObjectShape<F extends Fields> extends Shape<Values<F>> {
  /** one field alone, of an object that may have others that cannot be read */
  readonly at: <K extends keyof F & string>(raw: Raw, key: K) => ValueOf<F[K]>
  /** refuses fields of other names: one that is not understood might be what narrows the rest */
  readonly only: (raw: Raw) => Raw
}

export function field<T>(doc: string, shape: Shape<T>): Field<T> {
  return { doc, shape, required: false, absent: () => undefined }
}

export function fieldOr<T, const A>(absent: A, doc: string, shape: Shape<T>): Field<T, A> {
  return { doc, shape, required: false, absent: () => absent }
}

export function required<T>(doc: string, shape: Shape<T>): Field<T, never> {
  const absent = (): never => {
    throw new FieldError('', 'is missing')
  }
  return { doc, shape, required: true, absent }
}

/** Every element, or nothing at all; the shared empty list when the field is missing. `most` is the API server's
 * limit alone. */
export function listed<T>(
  doc: string,
  element: Shape<T>,
  limits: { readonly least?: number; readonly most: number },
): Field<readonly T[], readonly never[]> {
  const read = (value: unknown): readonly T[] => {
    if (!Array.isArray(value)) throw new FieldError('', 'must be a list')
    if (value.length < (limits.least ?? 0)) throw new FieldError('', 'is empty')
    // map makes a list of exactly this length; pushing would leave a third of it empty
    return value.length === 0 ? NONE : value.map((part: unknown, at) => under(at, () => element.read(part)))
  }
  const schema: Schema = { type: 'array', items: element.schema, ...(limits.least && { minItems: limits.least }), maxItems: limits.most }
  return { doc, shape: { read, schema }, required: false, absent: () => NONE }
}

export interface ObjectOptions<F extends Fields> {
  readonly rules?: readonly Rule<Values<F>>[]
  /** fields that are known elsewhere and not obeyed here, with why */
  readonly refused?: Readonly<Record<string, readonly [type: NonNullable<Schema['type']>, reason: string]>>
  /** what no rule says */
  readonly schema?: Pick<Schema, 'anyOf'>
}

export function object<const F extends Fields>(fields: F, options: ObjectOptions<F> = {}): ObjectShape<F> {
  const { rules = [], refused = {} } = options
  const described = Object.entries(fields)
  const only = (raw: Raw): Raw => {
    const other = Object.keys(raw).find((key) => !Object.hasOwn(fields, key) && own(raw, key) !== undefined)
    if (other === undefined) return raw
    throw new FieldError(other, Object.hasOwn(refused, other) ? (refused[other]?.[1] ?? '') : 'is not a field that is understood here')
  }
  const at = <K extends keyof F & string>(raw: Raw, key: K): ValueOf<F[K]> =>
    valueOf(raw, key, fields[key] as Field<ValueOf<F[K]>, ValueOf<F[K]>>)
  const read = (value: unknown): Values<F> => {
    const raw = only(asRecord(value))
    const all: Record<string, unknown> = {}
    for (const [key, one] of described) all[key] = valueOf(raw, key, one)
    const values = all as Values<F>
    for (const { path, reason, holds } of rules) if (!holds(values)) throw new FieldError(path, reason)
    return values
  }
  return { read, at, only, schema: objectSchema(fields, options) }
}

function valueOf<T, A>(raw: Raw, key: string, { shape, required: isRequired, absent }: Field<T, A>): T | A {
  const value = own(raw, key)
  // most fields are missing, and cannot be wrong
  if (value === undefined && !isRequired) return absent()
  return under(key, () => (value === undefined ? absent() : shape.read(value)))
}

function objectSchema<F extends Fields>(fields: F, { rules = [], refused = {}, schema = {} }: ObjectOptions<F>): Schema {
  const properties = Object.entries(fields).map(([key, { shape, doc }]) => [key, { description: doc, ...shape.schema }] as const)
  const others = Object.entries(refused).map(([key, [type, reason]]) => [key, refusedSchema(type, reason)] as const)
  const needed = Object.keys(fields).filter((key) => fields[key]?.required === true)
  const conditions = rules.map(({ path, reason, cel }): Condition => ({
    rule: cel,
    message: reason,
    ...(path === '' ? {} : { fieldPath: `.${path}` }),
  }))
  return {
    type: 'object',
    properties: Object.fromEntries([...properties, ...others]),
    ...(needed.length > 0 && { required: needed }),
    ...schema,
    ...(conditions.length > 0 && { 'x-kubernetes-validations': conditions }),
  }
}
