// SPDX-License-Identifier: Apache-2.0
/** Selectors as text: reading them, and the one form in which equal ones are written alike. Layer: lib/model. */
import { ParseError } from '../../base/errors.ts'
import { compareText } from '../../base/order.ts'
import { unreachable } from '../../base/result.ts'
import { tokensOf } from './tokens.ts'
import type { Token } from './tokens.ts'
import { ALL, not } from './selector.ts'
import type { Selector } from './selector.ts'

/** Parentheses within parentheses; more is a mistake or an attack on the stack. */
const DEEPEST = 100

/** `a == 'x' && (has(b) || c not in {'y', "z"})`; an empty text selects everything. Throws ParseError with the
 * reason. */
export function parseSelector(text: string): Selector {
  const reader = new Reader(text)
  if (reader.isAtEnd()) return ALL
  const selector = orOf(reader, 0)
  if (!reader.isAtEnd()) reader.fail('an operator')
  return selector
}

class Reader {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#text = text
    this.#tokens = tokensOf(text)
  }

  isAtEnd(): boolean {
    return this.#at === this.#tokens.length
  }

  /** Steps over the next token if it is of this kind. */
  take<K extends Token['kind']>(kind: K): Extract<Token, { readonly kind: K }> | undefined {
    const token = this.#tokens[this.#at]
    if (token === undefined || !isKind(token, kind)) return undefined
    this.#at++
    return token
  }

  /** As {@link take}, where nothing else may stand. */
  need<K extends Token['kind']>(kind: K, what: string): Extract<Token, { readonly kind: K }> {
    return this.take(kind) ?? this.fail(what)
  }

  fail(what: string): never {
    const next = this.#tokens[this.#at]
    const place = next === undefined ? 'at the end' : `at ${JSON.stringify(this.#text.slice(next.at, next.at + 12))}`
    throw new ParseError('selector', this.#text, `expected ${what} ${place}`)
  }
}

function isKind<K extends Token['kind']>(token: Token, kind: K): token is Extract<Token, { readonly kind: K }> {
  return token.kind === kind
}

function orOf(reader: Reader, depth: number): Selector {
  return chain(reader, { op: 'or', sign: '||', part: () => andOf(reader, depth) })
}

function andOf(reader: Reader, depth: number): Selector {
  return chain(reader, { op: 'and', sign: '&&', part: () => operation(reader, depth) })
}

function chain(reader: Reader, of: { readonly op: 'and' | 'or'; readonly sign: '&&' | '||'; readonly part: () => Selector }): Selector {
  const first = of.part()
  const parts = [first]
  while (reader.take(of.sign) !== undefined) parts.push(of.part())
  return parts.length === 1 ? first : { op: of.op, of: parts }
}

function operation(reader: Reader, depth: number): Selector {
  let negated = false
  while (reader.take('!') !== undefined) negated = !negated
  const selector = positive(reader, depth)
  return negated ? not(selector) : selector
}

function positive(reader: Reader, depth: number): Selector {
  if (reader.take('(') !== undefined) {
    if (depth === DEEPEST) reader.fail(`at most ${DEEPEST} parentheses within each other`)
    const inner = orOf(reader, depth + 1)
    reader.need(')', '")"')
    return inner
  }
  if (reader.take('all') !== undefined) return ALL
  if (reader.take('global') !== undefined) return { op: 'global' }
  const presence = reader.take('has')
  if (presence !== undefined) return { op: 'has', label: presence.label }
  const { label } = reader.need('label', 'a label')
  const comparison = reader.take('comparison')
  if (comparison !== undefined) return { op: comparison.op, label, value: reader.need('value', 'a text in quotes').value }
  const membership = reader.need('membership', 'an operator')
  return { op: membership.op, label, values: setOf(reader) }
}

/** A comma may follow the last value, but not stand alone. */
function setOf(reader: Reader): readonly string[] {
  reader.need('{', '"{"')
  const values = new Set<string>()
  for (let value = reader.take('value'); value !== undefined; value = reader.take('value')) {
    values.add(value.value)
    if (reader.take(',') === undefined) break
  }
  reader.need('}', '"}"')
  return [...values].sort(compareText)
}

const SIGNS = { equals: '==', differs: '!=', contains: 'contains', starts: 'starts with', ends: 'ends with' } as const

/** The same for all texts that differ only in spaces, quotes, doubled negations, superfluous parentheses and the
 * order within sets. */
export function formatSelector(selector: Selector): string {
  switch (selector.op) {
    case 'all':
      return 'all()'
    case 'none':
      return '!all()'
    case 'global':
      return 'global()'
    case 'has':
      return `has(${selector.label})`
    case 'equals':
    case 'differs':
    case 'contains':
    case 'starts':
    case 'ends':
      return `${selector.label} ${SIGNS[selector.op]} ${quoted(selector.value)}`
    case 'in':
      return `${selector.label} in {${selector.values.map(quoted).join(', ')}}`
    case 'not-in':
      return `${selector.label} not in {${selector.values.map(quoted).join(', ')}}`
    case 'not':
      return `!${formatSelector(selector.of)}`
    case 'and':
      return `(${selector.of.map(formatSelector).join(' && ')})`
    case 'or':
      return `(${selector.of.map(formatSelector).join(' || ')})`
    default:
      return unreachable(selector)
  }
}

function quoted(value: string): string {
  return value.includes('"') ? `'${value}'` : `"${value}"`
}
