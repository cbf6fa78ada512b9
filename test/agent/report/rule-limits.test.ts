// SPDX-License-Identifier: Apache-2.0
/** What the agent reports of endpoints with more rules than programs look through. Layer: test. */
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { RuleLimitReport, LINES } from '#agent/report/rule-limits.ts'
import type { TruncatedRuleLists } from '#agent/compile/policy/policy-size.ts'

test('a truncated rule list is logged once, and once when whole; the condition names some, and the node stays ready', () => {
  const said: string[] = []
  const say = (fields: object, event: string): void => void said.push(`${event} ${String(Object.values(fields)[0])}`)
  const health = new Health(() => 0)
  const book = new RuleLimitReport({ health, log: { ...silentLog, warn: say, info: say }, blocks: 1 })
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === LINES)?.reason
  const cut = (name: string, more: readonly string[] = []): TruncatedRuleLists => ({
    endpoints: [`Pod/${name}`, ...more],
    lines: ['ingress'],
  })
  book.note([])
  expect([said, reason()]).toEqual([[], ''])
  book.note([cut('x/a')])
  book.note([cut('x/a', ['Pod/x/b'])])
  expect(said).toEqual(['policy.truncated ingress of Pod/x/a'])
  expect(reason()).toBe('longer than the 1024 rules that programs look at, what comes later is denied: ingress of Pod/x/a and 1 alike')
  book.note([
    { endpoints: ['Pod/x/a', 'Pod/x/b'], lines: ['ingress', 'staged ingress'] },
    { endpoints: ['Pod/x/c'], lines: ['staged ingress'] },
  ])
  const outcome = 'ingress longer than the 1024 rules that programs look at, what comes later is denied'
  expect([...book.endpoints]).toEqual([
    ['Pod/x/a', outcome],
    ['Pod/x/b', outcome],
  ])
  book.note(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => cut(name)))
  expect(reason()).toMatch(/ingress of Pod\/a; .*ingress of Pod\/e and 2 more$/)
  book.note([])
  expect([said.length, reason(), health.report().ready]).toEqual([20, '', true])
})
