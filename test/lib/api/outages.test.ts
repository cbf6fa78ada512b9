// SPDX-License-Identifier: Apache-2.0
/** An API server that goes, comes back, or no longer knows us. Layer: test. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../../testkit/base/until.ts'
import { FakeServer, refuse, refuseAsEvent, service } from './fake-server.ts'
import { SourceRun, type SourceRunOptions } from './source-run.ts'

const SERVICES = '/api/v1/services'

let fake: FakeServer
beforeEach(async () => {
  fake = await FakeServer.start()
})
afterEach(async () => {
  await fake[Symbol.asyncDispose]()
})

function run(options: Partial<SourceRunOptions> = {}): SourceRun {
  return new SourceRun({ server: fake.server, ...options })
}

describe('kinds that wait for their next attempt, which is far away,', () => {
  const NODES = '/api/v1/nodes'
  const far = { firstMs: 5, factor: 100, maxMs: 60_000 }

  /** Watches of the last one end, and the server refuses all of them from now on; resolves after so many refusals of
   * that one. */
  async function refusing(collections: readonly string[], times: number): Promise<void> {
    let refused = 0
    fake.fault = ({ path }, response) => {
      if (!collections.includes(path)) return false
      if (path === collections.at(-1)) refused++
      refuse(response, 403, 'Forbidden')
      return true
    }
    fake.endWatches(collections.at(-1) ?? '')
    await until('the refusals', () => refused === times)
  }

  async function restarted(source: SourceRun): Promise<void> {
    const { port } = fake.server
    await fake.stop()
    await until('somebody to notice', () => source.unavailable?.includes('ECONNREFUSED') === true)
    await fake.listen(port)
  }

  test.each([
    ['another kind is heard again', async () => await refusing([SERVICES, NODES], 1)],
    ['the server can be reached again', restarted],
  ])('are woken when %s', async (_, meanwhile) => {
    await using source = await run({ backoff: far }).untilSynced()
    await until('the watches', () => fake.watching(SERVICES) === 1 && fake.watching(NODES) === 1)
    await refusing([SERVICES], 2)
    await meanwhile(source)
    fake.fault = () => false
    fake.put(SERVICES, service('late'))
    await source.untilThere('Service/default/late')
    await until('the end of it', () => source.unavailable === undefined)
  })

  test('are not woken by one whose watches begin and are refused by their first event', async () => {
    await using source = await run({ backoff: far }).untilSynced()
    await until('the watches', () => fake.watching(SERVICES) === 1 && fake.watching(NODES) === 1)
    await refusing([SERVICES], 2)
    const before = fake.requests.length
    let refused = 0
    fake.fault = ({ path }, response) => {
      if (path === NODES) refused++
      if (path === NODES || path === SERVICES) refuseAsEvent(response, 403, 'Forbidden')
      return path === NODES || path === SERVICES
    }
    fake.endWatches(NODES)
    await until('the refusals', () => refused === 2)
    await sleep(200)
    expect(fake.requests.slice(before).filter((request) => request.startsWith(SERVICES))).toEqual([])
    expect(source.unavailable).toContain('made to fail')
  })
})

test('a server that is gone is reported with reason and time; its objects stay, and when it is back none is passed on again', async () => {
  fake.put(SERVICES, service('web'))
  await using source = await run().untilSynced()
  await until('the watch', () => fake.watching(SERVICES) === 1)
  fake.fault = (_, response) => {
    response.destroy()
    return true
  }
  fake.cut()
  await until('the reason', () => source.unavailable !== undefined)
  expect(source.unavailable).toMatch(/: its last good state stays in force$/)
  fake.fault = () => false
  await until('the end of it', () => source.unavailable === undefined)
  expect(source.takeEvents()).toEqual(['upsert Service/default/web'])
})

describe('after an absence', () => {
  test('watches go on at once by another connection, from where they were', async () => {
    fake.put(SERVICES, service('web'))
    await using source = await run().untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    fake.quietly(() => fake.put(SERVICES, service('late')))
    await source.source.refresh('away')
    await source.untilThere('Service/default/late')
    expect(source.takeEvents()).toEqual(['upsert Service/default/web', 'upsert Service/default/late'])
    expect(source.source.facts().get('Service')).toMatchObject({ lists: 1 })
    expect(source.unavailable).toBeUndefined()
  })

  test('no kind waits for the time of its next attempt', async () => {
    await using source = await run({ backoff: { firstMs: 600_000, maxMs: 600_000 } }).untilSynced()
    await until('the watch', () => fake.watching(SERVICES) === 1)
    fake.fault = (_, response) => {
      response.destroy()
      return true
    }
    fake.cut()
    await until('the end of the watch', () => fake.watching(SERVICES) === 0)
    fake.put(SERVICES, service('late'))
    fake.fault = () => false
    // some may be about to wait: they are woken by the next
    const comes = async (): Promise<boolean> => {
      await source.source.refresh('away')
      return await source.untilThere('Service/default/late', 500).then(
        () => true,
        () => false,
      )
    }
    await expect.poll(comes, { interval: 1 }).toBe(true)
  })
})

test('certificates that were changed are used once the server no longer takes the old ones', async () => {
  let shown = 'old'
  let taken = 'old'
  const shownOn = new Map<Socket | null, string>()
  fake.fault = (_, response) => {
    if (!shownOn.has(response.socket)) shownOn.set(response.socket, shown)
    if (shownOn.get(response.socket) === taken) return false
    refuse(response, 401, 'Unauthorized')
    return true
  }
  const server = { ...fake.server, tls: () => Promise.resolve({ cert: shown }) }
  await using source = await run({ server }).untilSynced()
  await until('the watch', () => fake.watching(SERVICES) === 1)
  taken = 'new'
  fake.endWatches(SERVICES)
  await until('the refusal', () => source.unavailable?.includes('Unauthorized') === true)
  shown = 'new'
  fake.put(SERVICES, service('late'))
  await source.untilThere('Service/default/late')
  await until('the end of it', () => source.unavailable === undefined)
})
