// SPDX-License-Identifier: Apache-2.0
/** A selector's text, cut into its words. What follows a label is an operator, so that labels may be called "in" or
 * "has". Layer: lib/model. */
import { ParseError } from '../../base/errors.ts'

type Sign = (typeof PLAIN)[number]

export type Token = { readonly at: number } & (
  | { readonly [K in Sign | 'all' | 'global']: { readonly kind: K } }[Sign | 'all' | 'global']
  | { readonly kind: 'has'; readonly label: string }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'comparison'; readonly op: 'equals' | 'differs' | 'contains' | 'starts' | 'ends' }
  | { readonly kind: 'membership'; readonly op: 'in' | 'not-in' }
)

/** Without its place. */
type Word = Token extends infer T ? (T extends Token ? Omit<T, 'at'> : never) : never

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
  { pattern: /has\(\s*([\w./-]+)\s*\)/y, word: (label) => ({ kind: 'has', label }) },
  { pattern: /all\(\s*\)/y, word: () => ({ kind: 'all' }) },
  { pattern: /global\(\s*\)/y, word: () => ({ kind: 'global' }) },
  // an opening parenthesis after these words alone would be read as a label without an operator: say what is wrong
  { pattern: /(?!(?:has|all|global)\()([\w./-]+)/y, word: (label) => ({ kind: 'label', label }) },
]

const SIGNS: readonly Pattern[] = [
  { pattern: /==/y, word: () => ({ kind: 'comparison', op: 'equals' }) },
  { pattern: /!=/y, word: () => ({ kind: 'comparison', op: 'differs' }) },
  { pattern: /([(){},!]|&&|\|\|)/y, word: (sign) => ({ kind: signOf(sign) }) },
  { pattern: /"([^"]*)"/y, word: (value) => ({ kind: 'value', value }) },
  { pattern: /'([^']*)'/y, word: (value) => ({ kind: 'value', value }) },
]

const PLAIN = ['(', ')', '{', '}', ',', '!', '&&', '||'] as const

function signOf(text: string): Sign {
  return PLAIN.find((sign) => sign === text) ?? '!'
}

/** Throws ParseError where no word begins. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  for (let at = spaceEnd(text, 0); at < text.length;) {
    const after = tokens.at(-1)?.kind === 'label' ? OPERATORS : OPERANDS
    const found = match(text, at, [...SIGNS, ...after])
    if (found === undefined) throw new ParseError('selector', text, `cannot be understood at ${JSON.stringify(text.slice(at, at + 12))}`)
    if ('label' in found.word && found.word.label.length > LONGEST_LABEL) throw new ParseError('selector', text, 'a label is too long')
    tokens.push({ ...found.word, at })
    at = spaceEnd(text, found.end)
  }
  return tokens
}

function match(text: string, at: number, patterns: readonly Pattern[]): { readonly word: Word; readonly end: number } | undefined {
  for (const { pattern, word } of patterns) {
    pattern.lastIndex = at
    const groups = pattern.exec(text)
    if (groups !== null) return { word: word(groups[1] ?? ''), end: pattern.lastIndex }
  }
  return undefined
}

function spaceEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && /\s/.test(text.charAt(at))) at++
  return at
}
