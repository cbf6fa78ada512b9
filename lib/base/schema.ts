// SPDX-License-Identifier: Apache-2.0
/** What an API server checks of a value: the part of OpenAPI that definitions of custom resources have.
 * Layer: lib/base. */

/** A condition in CEL; `self` is the value at which it stands. */
export interface Condition {
  readonly rule: string
  readonly message: string
  /** CEL that is told in place of the message, as long as it gives a text: what else shows no value of several types */
  readonly messageExpression?: string
  /** where to say it: ".cidr" */
  readonly fieldPath?: string
  readonly reason?: 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueInvalid'
}

/** Constraints alone, as they stand below `anyOf`. */
export interface Constraint {
  readonly enum?: readonly (string | number)[]
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Constraint>>
  readonly items?: Constraint
  readonly anyOf?: readonly Constraint[]
  readonly not?: Constraint
}

export interface Schema extends Constraint {
  readonly type?: 'object' | 'array' | 'string' | 'boolean' | 'integer' | 'number'
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly 'x-kubernetes-int-or-string'?: true
  readonly 'x-kubernetes-preserve-unknown-fields'?: true
  readonly 'x-kubernetes-list-type'?: 'map' | 'set' | 'atomic'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-validations'?: readonly Condition[]
  /** of a text that no pattern describes */
  readonly example?: string
}

/** A field that must not be there, or only with the value that says what is done in any case. For another value the
 * API server answers why it is not obeyed. */
export function refusedSchema(type: NonNullable<Schema['type']>, reason: string, unless?: string | boolean): Schema {
  const rule = unless === undefined ? 'false' : `self == ${typeof unless === 'string' ? `'${unless}'` : String(unless)}`
  const text = unless === undefined ? `Refused: ${reason}.` : `Refused unless it is ${unless}: ${reason}.`
  const open: Schema =
    type === 'array' ? { items: { type: 'string' } } : type === 'object' ? { additionalProperties: { type: 'string' } } : {}
  return { type, ...open, description: text, 'x-kubernetes-validations': [{ rule, message: reason, reason: 'FieldValueForbidden' }] }
}
