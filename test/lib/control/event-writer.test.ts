// SPDX-License-Identifier: Apache-2.0
/** Times of events that are written one after the other. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { textOf } from '#lib/base/object.ts'
import { EventWriter } from '#lib/control/event-writer.ts'
import { silentLog } from '#lib/obs/log.ts'

const ABOUT = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default', uid: 'u' } })

/** "08:00:01 B" of each, as kubectl sorts them by the last time; `at`: when each is written, in ms. */
async function written(...at: readonly number[]): Promise<readonly string[]> {
  const events: ApiObject[] = []
  const create: ApiClient['create'] = (object) => {
    events.push(object)
    return Promise.resolve(object)
  }
  const refuse = (): Promise<never> => Promise.reject(new Error('not asked for'))
  let now = 0
  const client = { create, get: refuse, patch: refuse }
  const writer = new EventWriter({ client, log: silentLog, component: 'c', wall: () => Date.UTC(2026, 10, 26, 8) + now })
  for (const [index, time] of at.entries()) {
    now = time
    await writer.write(ABOUT, { type: 'Normal', reason: String.fromCharCode(65 + index), message: '' }, new AbortController().signal)
  }
  return events.map((event) => `${textOf(event['lastTimestamp']).slice(11, 19)} ${textOf(event['reason'])}`)
}

test('events of one second have times in the order in which they came', async () => {
  expect(await written(900, 950, 980, 4200)).toEqual(['08:00:00 A', '08:00:01 B', '08:00:02 C', '08:00:04 D'])
})

test('many at once are no more than seconds ahead', async () => {
  const all = await written(...Array.from({ length: 12 }, () => 0))
  expect(all.at(-1)).toBe('08:00:05 L')
})
