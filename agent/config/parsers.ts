// SPDX-License-Identifier: Apache-2.0
/** Parsers of single configuration values, each with the name of its type for the documentation. Layer: agent/config
 * (pure). */
import { CIDR_SCHEMA } from '#lib/base/address-schema.ts'
import { durationMs } from '#lib/base/time/duration.ts'
import { isPort } from '#lib/base/ip.ts'
import { tryParseStoredCidr } from '#lib/base/stored-ip.ts'
import type { Cidr, Port } from '#lib/base/ip.ts'
import type { Schema } from '#lib/base/schema.ts'
import type { Json } from '#lib/model/felix-configuration.ts'

export type Outcome<T> = { readonly kind: 'ok'; readonly value: T } | { readonly kind: 'refused'; readonly reason: string }

export interface Parser<T> {
  readonly type: string
  /** as much of it as an API server can check */
  readonly schema: Schema
  readonly parse: (value: Json) => Outcome<T>
}

function ok<T>(value: T): Outcome<T> {
  return { kind: 'ok', value }
}

function refused(reason: string): { readonly kind: 'refused'; readonly reason: string } {
  return { kind: 'refused', reason }
}

export const flag: Parser<boolean> = {
  type: 'true or false',
  schema: { type: 'boolean' },
  parse: (value) => (typeof value === 'boolean' ? ok(value) : refused('must be true or false')),
}

/** What true and false mean. */
export function switched<T>({ on, off }: { readonly on: T; readonly off: T }): Parser<T> {
  return {
    ...{ type: flag.type, schema: flag.schema },
    parse: (value) => (typeof value === 'boolean' ? ok(value ? on : off) : refused('must be true or false')),
  }
}

export const port: Parser<Port> = {
  type: 'port',
  schema: { type: 'integer', minimum: 1, maximum: 65_535 },
  parse: (value) => (typeof value === 'number' && isPort(value) ? ok(value) : refused('must be 1..65535')),
}

export interface PortSpan {
  readonly from: Port
  readonly to: Port
}

/** "20000:29999", both ends included. */
export const portRange: Parser<PortSpan> = {
  type: 'ports, from:to',
  schema: {
    type: 'string',
    maxLength: 11,
    pattern: '^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$',
    'x-kubernetes-validations': [
      {
        rule: "int(self.split(':')[0]) <= int(self.split(':')[1]) && int(self.split(':')[1]) <= 65535",
        message: 'must be two ports, like 20000:29999',
      },
    ],
  },
  parse: (value) => {
    const [, from, to] = (typeof value === 'string' ? /^(\d{1,5}):(\d{1,5})$/.exec(value) : null) ?? []
    const [first, last] = [Number(from), Number(to)]
    return isPort(first) && isPort(last) && first <= last ? ok({ from: first, to: last }) : refused('must be two ports, like 20000:29999')
  },
}

export function integer(min: number, max: number): Parser<number> {
  return {
    type: `${min}..${max}`,
    schema: { type: 'integer', minimum: min, maximum: max },
    parse: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? ok(value)
        : refused(`must be a whole number, ${min}..${max}`),
  }
}

/** A text that matches; `type` says what it is. */
export function text(type: string, pattern: RegExp): Parser<string> {
  const schema: Schema = { type: 'string', pattern: pattern.source }
  return { type, schema, parse: (value) => (typeof value === 'string' && pattern.test(value) ? ok(value) : refused(`must be ${type}`)) }
}

export const regularExpression: Parser<string> = {
  type: 'regular expression',
  // Go's regular expressions are others
  schema: { type: 'string', minLength: 1, example: '^eth[0-9]+$' },
  parse: (value) => {
    if (typeof value !== 'string' || value === '') return refused('must be a regular expression')
    try {
      new RegExp(value)
      return ok(value)
    } catch {
      return refused('must be a regular expression')
    }
  },
}

/** "eth0,/^docker/": what is between slashes is a regular expression. Read as one regular expression. */
export const interfaceNames: Parser<string> = {
  type: 'names and /regular expressions/, by commas',
  schema: { type: 'string', maxLength: 1024, example: 'kube-ipvs0,/^docker[0-9]+$/' },
  parse: (value) => {
    const reason = 'must be names of interfaces and /regular expressions/, by commas'
    if (typeof value !== 'string') return refused(reason)
    const parts = value.split(',').map((part) => part.trim())
    const sources = parts.filter((part) => part !== '').map(interfaceSource)
    const source = sources.every((part) => part !== undefined) ? sources.join('|') : undefined
    // of no name at all
    return source === undefined ? refused(reason) : ok(source === '' ? '^$' : source)
  },
}

function interfaceSource(part: string): string | undefined {
  if (!/^\/.+\/$/.test(part)) return /^[^/\s]{1,15}$/.test(part) ? `^(?:${part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')})$` : undefined
  const source = part.slice(1, -1)
  return regularExpression.parse(source).kind === 'ok' ? source : undefined
}

/** Each prefix once, in the order given. */
export const cidrList: Parser<readonly Cidr[]> = {
  type: 'list of IP prefixes',
  schema: { type: 'array', items: CIDR_SCHEMA, maxItems: 4096 },
  parse: (value) => {
    if (!Array.isArray(value)) return refused('must be a list of IP prefixes')
    const cidrs: Cidr[] = []
    for (const part of value) {
      const cidr = typeof part === 'string' ? tryParseStoredCidr(part) : undefined
      if (cidr === undefined) return refused(`must be a list of IP prefixes, like 10.0.0.0/24: ${JSON.stringify(part)} is none`)
      cidrs.push(cidr)
    }
    return ok(cidrs)
  },
}

/** One of the words, given as written → as used. Words that exist but are not implemented have their reason in
 * `refusals`. */
export function word<T>(words: Readonly<Record<string, T>>, refusals: Readonly<Record<string, string>> = {}): Parser<T> {
  const known = new Map(Object.entries(words))
  const unimplemented = new Map(Object.entries(refusals))
  return {
    type: [...known.keys()].join(', '),
    schema: { type: 'string', enum: [...known.keys()] },
    parse: (value) => {
      const meant = typeof value === 'string' ? known.get(value) : undefined
      if (meant !== undefined) return ok(meant)
      return refused((typeof value === 'string' ? unimplemented.get(value) : undefined) ?? `must be one of ${[...known.keys()].join(', ')}`)
    },
  }
}

/** "90s", "1h30m", "250ms" → ms; "Auto" is the field's default. */
export function duration(defaultMs: number): Parser<number> {
  return {
    type: 'duration (1h30m, 90s, 250ms) or Auto',
    schema: {
      type: 'string',
      pattern: '^(Auto|([0-9]{1,9}(\\.[0-9]{1,9})?(ms|s|m|h))+)$',
      maxLength: 64,
      example: '90s',
      'x-kubernetes-validations': [
        {
          rule: "self == 'Auto' || (duration(self) >= duration('1ms') && duration(self) <= duration('8760h'))",
          message: 'must be a duration like 1h30m, 90s or 250ms, at most 8760h',
        },
      ],
    },
    parse: (value) => {
      if (value === 'Auto') return ok(defaultMs)
      const ms = typeof value === 'string' ? durationMs(value) : undefined
      return ms === undefined || ms < 1 || ms > 1_000 * UNIT_YEAR_S
        ? refused('must be a duration like 1h30m, 90s or 250ms, at most 8760h')
        : ok(ms)
    },
  }
}

const UNIT_YEAR_S = 365 * 24 * 3600
