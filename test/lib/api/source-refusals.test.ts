// SPDX-License-Identifier: Apache-2.0
/** What a server that can be reached refuses: which other one is asked, and when again. Layer: test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { until } from '../../../testkit/base/until.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { FakeServer, refuse, service } from './fake-server.ts'
import { SourceRun } from './source-run.ts'

const SERVICES = '/api/v1/services'
const PODS = '/api/v1/pods'

let fake: FakeServer
beforeEach(async () => {
  fake = await FakeServer.start()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake[Symbol.asyncDispose]()
})

test('watches go on at another server of the name when one answers badly', async () => {
  const { server } = fake
  const { port } = server
  await using other = await FakeServer.start(port, '127.0.0.2')
  // that all begin at the other
  await fake.stop()
  const resolve = (): Promise<string[]> => Promise.resolve(['127.0.0.1', '127.0.0.2'])
  await using source = await new SourceRun({ server: { ...server, host: 'api.example' }, resolve }).untilSynced()
  await until('the watch', () => other.watching(SERVICES) === 1)
  await fake.listen(port)
  other.fault = ({ path }, response) => {
    if (path !== SERVICES) return false
    refuse(response, 503, 'ServiceUnavailable')
    return true
  }
  other.endWatches(SERVICES)
  await until('the watch of the first', () => fake.watching(SERVICES) === 1)
  fake.put(SERVICES, service('web'))
  await source.untilThere('Service/default/web')
  expect(source.unavailable).toBeUndefined()
})

// others are there again before the next attempt, or not
test.each([5, 400])('what fails everywhere is looked for once by each way: an attempt each %s ms', async (ms) => {
  await using source = await new SourceRun({ server: fake.server, backoff: { firstMs: ms, maxMs: ms } }).untilSynced()
  await until('the watch', () => fake.watching(SERVICES) === 1)
  const watches = (path: string): number => fake.requests.filter((request) => request.startsWith(`${path} watch`)).length
  const [others, failed] = [watches(PODS), watches(SERVICES)]
  fake.fault = ({ path }, response) => {
    if (path !== SERVICES) return false
    refuse(response, 500, 'InternalError')
    return true
  }
  fake.endWatches(SERVICES)
  await until('another way', () => watches(PODS) === others + 1)
  await until('many attempts', () => watches(SERVICES) > failed + (ms < 100 ? 40 : 6))
  expect(watches(PODS)).toBe(others + 1)
  expect(source.unavailable).toContain('InternalError')
})

test.each([0, 0.99])('a client that is to wait does so, and not all for the same time: %s', async (random) => {
  await using source = await new SourceRun({ server: fake.server }).untilSynced()
  await until('the watch', () => fake.watching(SERVICES) === 1)
  vi.spyOn(Math, 'random').mockReturnValue(random)
  await withinBestOfThree(random === 0 ? 1450 : 3000, async () => {
    let at: number | undefined
    fake.fault = ({ path }, response) => {
      if (path !== SERVICES || at !== undefined) return false
      at = performance.now()
      response.setHeader('retry-after', '1')
      refuse(response, 429, 'TooManyRequests')
      return true
    }
    fake.endWatches(SERVICES)
    await until('the refusal', () => at !== undefined)
    await until('the next watch', () => fake.watching(SERVICES) === 1)
    const waited = performance.now() - (at ?? 0)
    expect(waited).toBeGreaterThan(random === 0 ? 990 : 1480)
    return waited
  })
  expect(source.synced).toBe(1)
})
