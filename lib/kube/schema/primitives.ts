// SPDX-License-Identifier: Apache-2.0
/** Shapes of single values. Layer: lib/kube. */
import { ADDRESS_SCHEMA, CIDR_SCHEMA, NET_SCHEMA } from '../../base/address-schema.ts'
import { isPort } from '../../base/ip.ts'
import { MAC } from '../../base/mac.ts'
import type { Addr, Cidr, Port } from '../../base/ip.ts'
import { asAddr, asCidr, asNet, asRecord, asText, FieldError } from '../parse/fields.ts'
import type { Raw } from '../parse/fields.ts'
import type { Shape } from './shape.ts'

export const flag: Shape<boolean> = {
  read: (value) => {
    if (typeof value === 'boolean') return value
    throw new FieldError('', 'must be true or false')
  },
  schema: { type: 'boolean' },
}

export const number: Shape<number> = {
  read: (value) => {
    if (typeof value === 'number' && Number.isFinite(value)) return value
    throw new FieldError('', 'must be a number')
  },
  schema: { type: 'number' },
}

export function integer(minimum: number, maximum: number): Shape<number> {
  return {
    read: (value) => {
      if (typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum) return value
      throw new FieldError('', Number.isInteger(value) ? `must be ${minimum}..${maximum}` : 'must be a whole number')
    },
    schema: { type: 'integer', minimum, maximum },
  }
}

export const port: Shape<Port> = {
  read: (value) => {
    if (typeof value === 'number' && isPort(value)) return value
    throw new FieldError('', 'must be 1..65535')
  },
  schema: { type: 'integer', minimum: 1, maximum: 65_535 },
}

/** Any text. */
export const text: Shape<string> = { read: asText, schema: { type: 'string', maxLength: 1024 } }

/** A text that is not empty. */
export const name: Shape<string> = {
  read: (value) => {
    const read = asText(value)
    if (read === '') throw new FieldError('', 'is missing')
    return read
  },
  schema: { type: 'string', minLength: 1, maxLength: 253 },
}

/** A text that matches: the pattern is read by Go as well. */
export function matching(pattern: RegExp, reason: string): Shape<string> {
  return {
    read: (value) => {
      const read = asText(value)
      if (pattern.test(read)) return read
      throw new FieldError('', reason)
    },
    schema: { type: 'string', pattern: pattern.source },
  }
}

/** "02:00:5e:00:53:01" */
export const macAddress = matching(MAC, 'must be like 02:00:5e:00:53:01')

/** One of the words. */
export function word<const W extends string>(...words: readonly W[]): Shape<W> {
  return {
    read: (value) => {
      const read = asText(value)
      const found = words.find((candidate) => candidate === read)
      if (found === undefined) throw new FieldError('', `must be ${words.join(' or ')}`)
      return found
    },
    schema: { type: 'string', enum: words },
  }
}

/** Texts by name, as annotations are. */
export const texts: Shape<Raw> = { read: asRecord, schema: { type: 'object', additionalProperties: { type: 'string' } } }

export const address: Shape<Addr> = { read: asAddr, schema: ADDRESS_SCHEMA }

/** A prefix. */
export const cidr: Shape<Cidr> = { read: asCidr, schema: CIDR_SCHEMA }

/** A prefix, or an address alone. */
export const net: Shape<Cidr> = { read: asNet, schema: NET_SCHEMA }
