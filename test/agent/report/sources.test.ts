// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog, type Log, type LogFields } from '#lib/obs/log.ts'
import type { Problem } from '#lib/store/source.ts'
import { SourceReport } from '#agent/report/sources.ts'

function problem(ref: string, reason: string): Problem {
  return { place: 'web.yaml:3', rejected: { ref, path: 'spec', reason } }
}

function book() {
  const said: string[] = []
  const say = (fields: LogFields, event: string): void => {
    const what = ['ref', 'problem', 'reason'].map((name) => fields[name]).find((value) => typeof value === 'string') ?? ''
    said.push(`${event} ${what}`.trim())
  }
  const log: Log = { ...silentLog, info: say, warn: say, error: say }
  const health = new Health(() => 0)
  const clock = { now: 0 }
  return { book: new SourceReport(health, log, () => clock.now), health, said, clock }
}

describe('the report of sources', () => {
  test('logs a problem once when it comes and once when it goes', () => {
    const { book: one, said } = book()
    one.note('directory', { unavailable: undefined, problems: [problem('Service/a/b', 'bad port')] })
    one.note('directory', { unavailable: undefined, problems: [problem('Service/a/b', 'bad port'), problem('Pod/a/c', 'bad address')] })
    one.note('directory', { unavailable: undefined, problems: [] })
    expect(said).toEqual([
      'object.rejected Service/a/b',
      'object.rejected Pod/a/c',
      'object.accepted web.yaml:3 Service a/b: spec: bad port',
      'object.accepted web.yaml:3 Pod a/c: spec: bad address',
    ])
  })

  test('a problem is the same one where its file tells no line of it, and in another file another one', () => {
    const { book: one, said } = book()
    const at = (place: string): Problem => ({ ...problem('Service/a/b', 'is another’s'), place })
    for (const problems of [[at('web.yaml:3')], [at('web.yaml')], [at('web.yaml:9')], [at('web.yaml:9'), at('db.yaml:1')]])
      one.noteRefusals('compiler', problems)
    expect(said).toEqual(['object.rejected Service/a/b', 'object.rejected Service/a/b'])
  })

  test('a lost source is reported with its time, and the node stays ready', () => {
    const { book: one, health, said } = book()
    one.note('directory', { unavailable: undefined, problems: [] })
    one.note('directory', { unavailable: { reason: 'gone', since: 0 }, problems: [] })
    expect(health.report()).toMatchObject({
      ready: true,
      conditions: [{ name: 'source.directory', ok: false, reason: 'gone (since 1970-01-01T00:00:00.000Z)' }],
    })
    one.note('directory', { unavailable: undefined, problems: [] })
    expect(health.report().conditions[0]?.ok).toBe(true)
    expect(said).toEqual(['source.disconnected gone', 'source.reconnected'])
  })

  test('an outage is logged once however often its reason changes, and seldom again', () => {
    const { book: one, health, said, clock } = book()
    const lose = (reason: string): void => {
      one.note('api', { unavailable: { reason, since: 0 }, problems: [] })
    }
    for (const reason of ['refused', 'refused (and 1 other kinds)', 'refused (and 2 other kinds)']) lose(reason)
    expect(said).toEqual(['source.disconnected refused'])
    expect(health.report().conditions[0]?.reason).toMatch(/^refused \(and 2 other kinds\)/)
    for (const minute of [1, 2, 3, 4, 5, 6, 7]) {
      clock.now = minute * 60_000
      lose(`at ${minute}`)
    }
    expect(said.slice(1)).toEqual(['source.disconnected at 1', 'source.disconnected at 3', 'source.disconnected at 7'])
    one.note('api', { unavailable: undefined, problems: [] })
    one.note('api', { unavailable: undefined, problems: [] })
    lose('refused')
    expect(said.slice(4)).toEqual(['source.reconnected', 'source.disconnected refused'])
  })

  test('lists each with how much of it is refused', () => {
    const { book: one } = book()
    one.note('directory', { unavailable: { reason: 'gone', since: 0 }, problems: [problem('Service/a/b', 'bad')] })
    one.noteRefusals('configuration', [])
    expect(one.list()).toEqual([
      { name: 'directory', available: false, unavailableSince: 0, rejected: 1 },
      { name: 'configuration', available: true, unavailableSince: undefined, rejected: 0 },
    ])
  })
})
