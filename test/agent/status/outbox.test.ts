// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import { DatastoreLockedError } from '#lib/base/errors.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog, type Log, type LogFields } from '#lib/obs/log.ts'
import { Outbox, WRITTEN, type Subject } from '#agent/status/outbox.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const RUNNING = new AbortController().signal

/** Has these keys to write until they are written, unless `fails` has an error for one. */
class Keys implements Subject {
  readonly name: string
  readonly wanted: Set<string>
  readonly fails = new Map<string, Error>()
  readonly attempts: string[]

  constructor(name: string, keys: readonly string[], attempts: string[]) {
    this.name = name
    this.wanted = new Set(keys)
    this.attempts = attempts
  }

  due() {
    return [...this.wanted].map((key) => ({
      key,
      write: () => {
        this.attempts.push(key)
        const error = this.fails.get(key)
        if (error !== undefined) return Promise.reject(error)
        this.wanted.delete(key)
        return Promise.resolve()
      },
    }))
  }
}

function world(...keys: readonly (readonly string[])[]) {
  const attempts: string[] = []
  const said: string[] = []
  const note = (_: LogFields, event: string): void => {
    said.push(event)
  }
  const log: Log = { ...silentLog, info: note, warn: note }
  const subjects = keys.map((own, at) => new Keys(`s${at}`, own, attempts))
  const clock = new FakeClock()
  const health = new Health(() => clock.wall())
  const lacks: { reason?: string } = {}
  const outbox = new Outbox({ subjects, clock, health, log, random: () => 0, lacks: () => lacks.reason })
  /** what is tried in a round, so many ms later */
  const round = async (ms = 0): Promise<readonly string[]> => {
    clock.advance(ms)
    await outbox.round(RUNNING)
    return attempts.splice(0)
  }
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === WRITTEN)?.reason
  return { subjects, round, reason, said, health, lacks }
}

function refused(status: number, reason: string, retryAfterMs?: number): ApiError {
  return new ApiError({ status, reason, message: `HTTP ${status}`, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

test('what is due is written once, subject by subject, and the condition holds', async () => {
  const { round, reason } = world(['a', 'b'], ['c'])
  expect([await round(), await round(1000), reason()]).toEqual([['a', 'b', 'c'], [], ''])
})

test('what a lock of the datastore refuses is due again, holds up nothing, and is no failure', async () => {
  const { subjects, round, reason } = world(['a'], ['b'])
  subjects[0]?.fails.set('a', new DatastoreLockedError('locked'))
  expect([await round(), await round(1000), reason()]).toEqual([['a', 'b'], ['a'], ''])
})

test('the outbox writes no more than 20 at once and five a second', async () => {
  const { round } = world(Array.from({ length: 40 }, (_, at) => `k${at}`))
  const counts = [await round(), await round(1000), await round(1000), await round(60_000)].map(({ length }) => length)
  expect(counts).toEqual([20, 5, 5, 10])
})

test('a server that cannot be asked is asked for one thing, later and later, and nothing is lost', async () => {
  const { subjects, round, reason, said, health } = world(['a', 'b'], ['c'])
  const [first] = subjects
  first?.fails.set('a', new UnreachableError('no answer'))
  const rounds = [await round(), await round(999), await round(1), await round(1999), await round(1)]
  expect(rounds).toEqual([['a'], [], ['a'], [], ['a']])
  expect([reason(), health.report().ready, said]).toEqual(['no answer', true, ['status.write-failed']])
  first?.fails.clear()
  expect([await round(4000), reason(), said.at(-1)]).toEqual([['a', 'b', 'c'], '', 'status.written'])
})

test('an overloaded server is left alone as long as it asks for', async () => {
  const { subjects, round } = world(['a'])
  subjects[0]?.fails.set('a', refused(429, 'TooManyRequests', 30_000))
  expect([await round(), await round(29_999), await round(1)]).toEqual([['a'], [], ['a']])
})

test('what is forbidden holds up what is like it, and not the others', async () => {
  const { subjects, round, reason } = world(['a', 'b'], ['c'])
  subjects[0]?.fails.set('a', refused(403, 'Forbidden'))
  expect([await round(), reason()]).toEqual([['a', 'c'], 'HTTP 403'])
})

test('a write that is refused holds up no other, and is forgotten when it is not wanted any more', async () => {
  const { subjects, round, reason } = world(['a', 'b'])
  subjects[0]?.fails.set('a', refused(422, 'Invalid'))
  expect([await round(), await round(1999), await round(1), reason()]).toEqual([['a', 'b'], [], ['a'], 'HTTP 422'])
  subjects[0]?.wanted.delete('a')
  expect([await round(), reason()]).toEqual([[], ''])
})

test('a write that always fails lets the others go first, though its error could concern any of them', async () => {
  for (const error of [refused(500, 'InternalError'), refused(403, 'Forbidden')]) {
    const { subjects, round } = world(['a', 'b', 'c'])
    subjects[0]?.fails.set('a', error)
    expect([await round(), await round(1000), await round(1000)]).toEqual([['a'], ['b', 'c'], ['a']])
  }
})

test('when nothing is to be written nothing fails', async () => {
  const { subjects, round, reason } = world(['a'])
  subjects[0]?.fails.set('a', new UnreachableError('no answer'))
  await round()
  subjects[0]?.wanted.delete('a')
  expect([await round(1000), reason()]).toEqual([[], ''])
})

test('a defect ends the outbox', async () => {
  const { subjects, round } = world(['a'])
  subjects[0]?.fails.set('a', new TypeError('undefined is no function'))
  await expect(round()).rejects.toThrow(TypeError)
})

test('what has been written may still be lacking', async () => {
  const { round, reason, said, lacks } = world(['a'])
  lacks.reason = 'the server has not heard'
  expect([await round(), reason()]).toEqual([['a'], 'the server has not heard'])
  delete lacks.reason
  expect([await round(1000), reason(), said]).toEqual([[], '', []])
})
