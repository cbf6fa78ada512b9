// SPDX-License-Identifier: Apache-2.0
/** Selectors: what they select, how they are written, and what they need. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matcherOf } from '#lib/model/selector/matcher.ts'
import { needsOf } from '#lib/model/selector/needs.ts'
import { formatSelector, parseSelector } from '#lib/model/selector/text.ts'
import { ALL, and, equals, has, NONE_AT_ALL, not, or, selects, withPrefix } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'

const matches = (expression: string, labels: Readonly<Record<string, string>>): boolean =>
  selects(parseSelector(expression), new Map(Object.entries(labels)))

describe('a selector', () => {
  const shop = { app: 'web', zone: 'east-1', empty: '' }
  test.each([
    ['', true],
    ['all()', true],
    ["app == 'web'", true],
    ['app == "shop"', false],
    ["app != 'web'", false],
    ["owner != 'me'", true],
    ["owner == ''", false],
    ["empty == ''", true],
    ['has(app)', true],
    ['has( owner )', false],
    ["app in {'db', 'web'}", true],
    ["app in {'db', 'web',}", true],
    ['app in {}', false],
    ['app not in {}', true],
    ["owner in {'me'}", false],
    ["owner not in {'me'}", true],
    ["app notin {'web'}", false],
    ["zone contains 'st'", true],
    ["zone starts with 'east'", true],
    ["zone startswith 'west'", false],
    ["zone ends with '-1'", true],
    ["owner contains ''", false],
    ["! owner contains ''", true],
    ['global()', true],
    ["!!app == 'web'", true],
    ["!app == 'web' || has(zone) && has(owner)", false],
    ["(!app == 'web' || has(zone)) && !has(owner)", true],
    ['has(app)\n  && has(zone)', true],
  ])('%j: %s', (expression, expected) => {
    expect(matches(expression, shop)).toBe(expected)
  })

  test('of what belongs to no namespace', () => {
    expect(matches('global()', { 'netplane.io/namespace': 'shop' })).toBe(false)
    expect(matches('!global()', { 'netplane.io/namespace': 'shop' })).toBe(true)
  })

  test('speaks of labels that are called as words of the grammar', () => {
    expect(
      matches("in in {'in'} && has == 'has' && has(not) && not not in {'x'} && all == 'y'", { in: 'in', has: 'has', not: 'n', all: 'y' }),
    ).toBe(true)
  })
})

test.each([
  ['app', 'expected an operator at the end'],
  ["app = 'web'", 'cannot be understood at "= \'web\'"'],
  ["app == 'web", 'cannot be understood at "\'web"'],
  ['app == web', 'expected a text in quotes at "web"'],
  ["app == 'web' has(zone)", 'expected an operator at "has(zone)"'],
  ['app in {,}', 'expected "}" at ",}"'],
  ["app in 'web'", 'expected "{" at "\'web\'"'],
  ['(has(app)', 'expected ")" at the end'],
  ['has(app', 'cannot be understood at "has(app"'],
  ['has(app) &', 'cannot be understood at "&"'],
  ['has(app) &&', 'expected a label at the end'],
  ['()', 'expected a label at ")"'],
  [`${'('.repeat(200)}all()${')'.repeat(200)}`, 'expected at most 100 parentheses within each other'],
  [`has(${'a'.repeat(600)})`, 'a label is too long'],
])('%j is refused', (expression, reason) => {
  expect(() => parseSelector(expression)).toThrow(reason)
})

test.each([
  ["a=='x'&&b!='y'", '(a == "x" && b != "y")'],
  ['a in {"y",\'x\',"y"}', 'a in {"x", "y"}'],
  ['! ! has(a)', 'has(a)'],
  ['!(a == \'x\' || (b startswith "y"))', '!(a == "x" || b starts with "y")'],
  ["a == '\"'", "a == '\"'"],
  ['a notin{}', 'a not in {}'],
  [' ', 'all()'],
])('%j is written %s', (expression, canonical) => {
  expect(formatSelector(parseSelector(expression))).toBe(canonical)
})

test('parts that say nothing are left out when selectors are put together', () => {
  expect(and()).toBe(ALL)
  expect(and(ALL, has('a'))).toEqual(has('a'))
  expect(formatSelector(and(and(has('a'), has('b')), ALL, has('c')))).toBe('(has(a) && has(b) && has(c))')
  expect(and(has('a'), NONE_AT_ALL)).toBe(NONE_AT_ALL)
  expect(or()).toBe(NONE_AT_ALL)
  expect(or(has('a'))).toEqual(has('a'))
  expect(formatSelector(withPrefix(parseSelector("a in {'x'} || !global()"), 'pcns.'))).toBe('(pcns.a in {"x"} || !global())')
})

describe('what a selector needs', () => {
  test('is found in each of its parts', () => {
    const needs = needsOf(
      parseSelector("a in {'x', 'y'} && a != 'z' && has(b) && !has(c) && (d == '1' || d == '2') && (e == '1' || f == '2')"),
    )
    expect([...needs]).toEqual([
      ['a', { present: true, absent: false, values: new Set(['x', 'y']) }],
      ['b', { present: true, absent: false, values: undefined }],
      ['c', { present: false, absent: true, values: undefined }],
      ['d', { present: true, absent: false, values: new Set(['1', '2']) }],
    ])
    expect(needsOf(parseSelector("a == 'x' && a == 'y'")).get('a')?.values).toEqual(new Set())
  })
})

const label = fc.constantFrom('a', 'b', 'in', 'k8s.io/x', 'netplane.io/namespace')
const value = fc.constantFrom('', 'x', 'y', "'", '"', '日本')
const leaf: fc.Arbitrary<Selector> = fc.oneof(
  fc.constant(ALL),
  fc.constant<Selector>({ op: 'global' }),
  label.map(has),
  fc
    .tuple(fc.constantFrom('equals', 'differs', 'contains', 'starts', 'ends'), label, value)
    .map(([op, key, text]): Selector => ({ op, label: key, value: text })),
  fc
    .tuple(fc.constantFrom('in', 'not-in'), label, fc.uniqueArray(value))
    .map(([op, key, values]): Selector => ({ op, label: key, values: values.sort() })),
)
const { tree } = fc.letrec<{ tree: Selector }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    tie('tree')
      .filter(({ op }) => op !== 'not')
      .map(not),
    fc.tuple(fc.constantFrom('and', 'or'), fc.array(tie('tree'), { minLength: 2, maxLength: 3 })).map(([op, of]): Selector => ({ op, of })),
  ),
}))
const labels = fc.dictionary(label, value).map((record) => new Map(Object.entries(record)))

describe('any selector', () => {
  test('is read back as it is written', () => {
    fc.assert(
      fc.property(tree, (selector) => {
        expect(parseSelector(formatSelector(selector))).toEqual(selector)
      }),
    )
  })

  test('selects only labels with what needsOf says it needs', () => {
    fc.assert(
      fc.property(tree, labels, (selector, own) => {
        if (!selects(selector, own)) return
        for (const [key, { present, absent, values }] of needsOf(selector)) {
          const held = own.get(key)
          expect(present ? held !== undefined : absent ? held === undefined : false).toBe(true)
          if (values !== undefined) expect([...values]).toContain(held)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('made ready for many labels says the same of them', () => {
    fc.assert(
      fc.property(tree, fc.array(labels), (selector, all) => {
        const matcher = matcherOf(selector)
        for (const own of all) expect(matcher(own)).toBe(selects(selector, own))
      }),
      { numRuns: 1_000 },
    )
  })

  test('is the opposite of its negation, and holds with others as logic has it', () => {
    fc.assert(
      fc.property(tree, tree, labels, (a, b, own) => {
        const [left, right] = [selects(a, own), selects(b, own)]
        expect(selects(not(a), own)).toBe(!left)
        expect([selects(and(a, b), own), selects(or(a, b), own)]).toEqual([left && right, left || right])
        expect(selects(and(equals('none', 'x'), a), own)).toBe(false)
      }),
    )
  })

  test('or any text is read, or refused with a reason', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc
            .array(fc.constantFrom('a', ' ', "'x'", '==', '(', ')', '{', '}', ',', '!', '&&', '||', 'in', 'not', 'has(', 'all()'))
            .map((parts) => parts.join('')),
        ),
        (text) => {
          try {
            expect(formatSelector(parseSelector(formatSelector(parseSelector(text))))).toBe(formatSelector(parseSelector(text)))
          } catch (thrown) {
            expect(thrown).toMatchObject({ code: 'PARSE' })
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
