// SPDX-License-Identifier: Apache-2.0
/** Things that may be wrong, and their condition. Layer: test. */
import { expect, test } from 'vitest'
import { ConditionReporter, reasonsText } from '#lib/obs/condition-reporter.ts'
import { Health } from '#lib/obs/health.ts'

test('each is told when it comes, is another, and goes; together they are the reason', () => {
  const said: string[] = []
  const health = new Health(() => 0)
  const reporter = new ConditionReporter<string>({
    health,
    condition: 'all.well',
    reason: (all) => reasonsText(all, (why) => why),
    isSame: (before, now) => before === now,
    found: (key, now, before) => void said.push(`${key} ${before ?? 'new'} -> ${now}`),
    gone: (key, last) => void said.push(`${key} ${last} -> gone`),
  })
  const note = (of: Readonly<Record<string, string>>) => {
    said.length = 0
    reporter.note(new Map(Object.entries(of)))
    return [said, health.report().conditions[0]?.reason]
  }
  expect(note({})).toEqual([[], ''])
  expect(note({ a: 'x', b: 'x' })).toEqual([['a new -> x', 'b new -> x'], 'a: x; b: x'])
  expect(note({ a: 'x', b: 'y' })).toEqual([['b x -> y'], 'a: x; b: y'])
  expect(note({ b: 'y' })).toEqual([['a x -> gone'], 'b: y'])
  expect([...reporter.all]).toEqual([['b', 'y']])
  expect(note({})).toEqual([['b y -> gone'], ''])
})
