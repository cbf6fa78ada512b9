// SPDX-License-Identifier: Apache-2.0
/** What the agent reports of host endpoints that match no device. Layer: test. */
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { HOST_ENDPOINTS, unmatchedHostEndpoints } from '#agent/dataplane/policy/unmatched-host-endpoints.ts'

test('each is logged once, and once when it has a device; the node stays ready', () => {
  const said: string[] = []
  const say = (fields: object, event: string): void => void said.push(`${event} ${String(Object.values(fields)[0])}`)
  const health = new Health(() => 0)
  const book = unmatchedHostEndpoints({ health, log: { ...silentLog, warn: say, info: say } })
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === HOST_ENDPOINTS)?.reason
  expect(reason()).toBe('starting')
  const strays = (names: string): Map<string, string> => new Map(Array.from(names).map((name) => [name, 'nowhere']))
  book.note(strays(''))
  book.note(strays('ab'))
  book.note(strays('ab'))
  expect([said, reason()]).toEqual([['host-endpoint.unmatched a', 'host-endpoint.unmatched b'], 'a: nowhere; b: nowhere'])
  book.note(strays('abcdefg'))
  expect(reason()).toMatch(/e: nowhere and 2 more$/)
  book.note(strays(''))
  expect([said.length, said.at(-1), reason(), health.report().ready]).toEqual([14, 'host-endpoint.matched g', '', true])
})
