// SPDX-License-Identifier: Apache-2.0
/** A selector's text, cut into its words. What follows a label is an operator, so that labels may be called "in" or
 * "has". Layer: lib/model. */
import { ParseError } from '../../base/errors.ts'

type Sign = '(' | ')' | '{' | '}' | ',' | '!' | '&&' | '||'
type Operator =
  | { readonly kind: 'comparison'; readonly op: 'equals' | 'differs' | 'contains' | 'starts' | 'ends' }
  | { readonly kind: 'membership'; readonly op: 'in' | 'not-in' }

type Word =
  | { readonly [K in Sign | 'all' | 'global']: { readonly kind: K } }[Sign | 'all' | 'global']
  | { readonly kind: 'has'; readonly label: string }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'value'; readonly value: string }
  | Operator

/** `at` and `end`: where it stands. */
export type Token = { readonly at: number; readonly end: number } & Word

interface Pattern {
  /** sticky; the groups are what `word` is given */
  readonly pattern: RegExp
  readonly word: (group: string) => Word
}

const LONGEST_LABEL = 512

const OPERATORS: readonly Pattern[] = [
  { pattern: /contains/y, word: () => ({ kind: 'comparison', op: 'contains' }) },
  { pattern: /starts\s*with/y, word: () => ({ kind: 'comparison', op: 'starts' }) },
  { pattern: /ends\s*with/y, word: () => ({ kind: 'comparison', op: 'ends' }) },
  { pattern: /not\s*in/y, word: () => ({ kind: 'membership', op: 'not-in' }) },
  { pattern: /in/y, word: () => ({ kind: 'membership', op: 'in' }) },
]

const OPERANDS: readonly Pattern[] = [
  // an opening parenthesis after these words alone would be read as a label without an operator: say what is wrong
  { pattern: /(?!(?:has|all|global)\()([\w./-]+)/y, word: (label) => ({ kind: 'label', label }) },
  { pattern: /has\(\s*([\w./-]+)\s*\)/y, word: (label) => ({ kind: 'has', label }) },
  { pattern: /all\(\s*\)/y, word: () => ({ kind: 'all' }) },
  { pattern: /global\(\s*\)/y, word: () => ({ kind: 'global' }) },
]

/** Throws ParseError where no word begins. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  for (let at = spaceEnd(text, 0); at < text.length;) {
    const token = signAt(text, at) ?? wordAt(text, at, tokens.at(-1)?.kind === 'label' ? OPERATORS : OPERANDS)
    if (token === undefined) throw new ParseError('selector', text, `cannot be understood at ${JSON.stringify(text.slice(at, at + 12))}`)
    if ('label' in token && token.label.length > LONGEST_LABEL) throw new ParseError('selector', text, 'a label is too long')
    tokens.push(token)
    at = spaceEnd(text, token.end)
  }
  return tokens
}

/** Signs and values: without regular expressions, because a text may have hundreds of thousands. */
function signAt(text: string, at: number): Token | undefined {
  const sign = text.charAt(at)
  const hasMore = (more: string): boolean => text.charAt(at + 1) === more
  switch (sign) {
    case '(':
    case ')':
    case '{':
    case '}':
    case ',':
      return { kind: sign, at, end: at + 1 }
    case '!':
      return hasMore('=') ? { kind: 'comparison', op: 'differs', at, end: at + 2 } : { kind: '!', at, end: at + 1 }
    case '=':
      return hasMore('=') ? { kind: 'comparison', op: 'equals', at, end: at + 2 } : undefined
    case '&':
      return hasMore('&') ? { kind: '&&', at, end: at + 2 } : undefined
    case '|':
      return hasMore('|') ? { kind: '||', at, end: at + 2 } : undefined
    case '"':
    case "'": {
      const close = text.indexOf(sign, at + 1)
      return close < 0 ? undefined : { kind: 'value', value: text.slice(at + 1, close), at, end: close + 1 }
    }
    default:
      return undefined
  }
}

function wordAt(text: string, at: number, patterns: readonly Pattern[]): Token | undefined {
  for (const { pattern, word } of patterns) {
    pattern.lastIndex = at
    const groups = pattern.exec(text)
    if (groups !== null) return { ...word(groups[1] ?? ''), at, end: pattern.lastIndex }
  }
  return undefined
}

function spaceEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text, at)) at++
  return at
}

function isSpace(text: string, at: number): boolean {
  const char = text.charCodeAt(at)
  // of most no pattern need be asked
  return (char <= 32 || char > 126) && /\s/.test(text.charAt(at))
}
