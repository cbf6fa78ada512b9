// SPDX-License-Identifier: Apache-2.0
/** What of the status others wait for. Layer: test. */
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { StatusApi } from '#agent/status/status-api.ts'
import { statusOf } from '#agent/report/status.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { model, node, nodeNetwork, storeOf } from '../../support/build.ts'

const RUNNING = new AbortController().signal
const nobody = (): Promise<never> => Promise.reject(new Error('no server is asked'))
const API: StatusApi = { get: nobody, list: nobody, create: nobody, patch: nobody, request: nobody }

test.each([
  ['our plugin serves', true],
  ['another plugin has, or none,', false],
])('where %s pods readiness waits until the others have heard of the node: %s', async (_, servesPods) => {
  const clock = new FakeClock()
  const health = new Health(() => clock.wall())
  const store = storeOf([node('n1', { addresses: ['192.168.0.1'] })])
  const {
    outboxes: [announced],
  } = statusOf({
    whyLocked: () => undefined,
    ...{ api: API, node: 'n1', version: '0.1.0', clock, store, health, log: silentLog, wasReady: false },
    book: { refused: new Map() },
    policies: { wrong: new Map() },
    cuts: () => undefined,
    running: undefined,
    openPod: undefined,
    config: () => undefined,
    duties: { makesRoutes: true, servesPods },
    firewalls: () => [],
    byService: undefined,
  })
  const unready = async (): Promise<readonly string[]> => {
    await announced?.round(RUNNING)
    return health.unready().map(({ name, reason }) => `${name}: ${reason}`)
  }
  const waits = servesPods ? ['network.announced: other nodes have not heard of the addresses and ranges of this one'] : []
  expect(await unready()).toEqual(waits)
  store.sink('test').apply([{ kind: 'upsert', object: model(nodeNetwork('n1', { addresses: ['192.168.0.9'] })) }])
  expect(await unready()).toEqual(waits)
  store.sink('test').apply([{ kind: 'upsert', object: model(nodeNetwork('n1', { addresses: ['192.168.0.1'] })) }])
  expect(await unready()).toEqual([])
})
