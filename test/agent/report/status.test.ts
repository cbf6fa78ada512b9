// SPDX-License-Identifier: Apache-2.0
/** What of the status others wait for. Layer: test. */
import { expect, test } from 'vitest'
import { ApiError } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { StatusApi } from '#agent/status/status-api.ts'
import { PolicyReport } from '#agent/report/policies.ts'
import { statusOf } from '#agent/report/status.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { model, node, nodeNetwork, storeOf, v3 } from '../../support/build.ts'

const V3 = 'netplane.io/v3'
const RUNNING = new AbortController().signal
const nobody = (): Promise<never> => Promise.reject(new Error('no server is asked'))
const API: StatusApi = { get: nobody, list: nobody, create: nobody, patch: nobody, request: nobody }

/** Of a node whose kernel does not run our programs. */
const OPTIONS = {
  whyLocked: () => undefined,
  ...{ node: 'n1', version: '0.1.0', log: silentLog, wasReady: false },
  book: { refused: new Map() },
  policies: { wrong: new Map(), isKnown: true },
  cuts: () => undefined,
  running: undefined,
  openPod: undefined,
  config: () => undefined,
  firewalls: () => [],
  byService: undefined,
} as const

test.each([
  ['our plugin serves', true],
  ['another plugin has, or none,', false],
])('where %s pods readiness waits until the others have heard of the node: %s', async (_, servesPods) => {
  const clock = new FakeClock()
  const health = new Health(() => clock.wall())
  const store = storeOf([node('n1', { addresses: ['192.168.0.1'] })])
  const {
    outboxes: [announced],
  } = statusOf({ ...OPTIONS, api: API, clock, store, health, duties: { makesRoutes: true, servesPods } })
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

/** An API server that has these objects, and the events it is told of. */
function hearing(...objects: readonly ApiObject[]): { readonly api: StatusApi; readonly said: ApiObject[] } {
  const said: ApiObject[] = []
  const api: StatusApi = {
    ...API,
    get: () => Promise.reject(new ApiError({ status: 404, reason: 'NotFound', message: 'not found' })),
    list: ({ kind }) => Promise.resolve(objects.filter((one) => one.kind === kind)),
    create: (object) => {
      if (object.kind === 'Event') said.push(object)
      return Promise.resolve(object)
    },
  }
  return { api, said }
}

test('a host endpoint by which the node sends nothing has an event', async () => {
  const clock = new FakeClock()
  const { api, said } = hearing(asApiObject({ apiVersion: V3, kind: 'HostEndpoint', metadata: { name: 'all', uid: '7' } }))
  const store = storeOf([node('n1', { addresses: ['192.168.0.1'] }), v3('HostEndpoint', 'all', { node: 'n1', interfaceName: '*' })])
  const health = new Health(() => clock.wall())
  const { outboxes } = statusOf({ ...OPTIONS, api, clock, store, health, duties: { makesRoutes: true, servesPods: true } })
  for (const outbox of outboxes) await outbox.round(RUNNING)
  expect(said).toMatchObject([{ reason: 'NothingLeaves', involvedObject: { kind: 'HostEndpoint', name: 'all', uid: '7' } }])
})

test('an agent that starts has no event of a refused policy before it knows what became of the policy', async () => {
  const clock = new FakeClock()
  const { api, said } = hearing(asApiObject({ apiVersion: V3, kind: 'GlobalNetworkPolicy', metadata: { name: 'web', uid: '7' } }))
  const store = storeOf([node('n1', { addresses: ['192.168.0.1'] })])
  const health = new Health(() => clock.wall())
  const policies = new PolicyReport({ health, log: silentLog })
  const rejected = { ref: 'GlobalNetworkPolicy/web', path: 'spec.order', reason: 'must be a number' }
  const problem = { place: undefined, rejected }
  policies.noteSource('cluster', { unavailable: undefined, problems: [problem] })
  const book = { refused: new Map([['cluster', [problem]]]) }
  const { outboxes } = statusOf({ ...OPTIONS, api, clock, store, book, policies, health, duties: { makesRoutes: true, servesPods: true } })
  const messages = async (): Promise<readonly unknown[]> => {
    for (const outbox of outboxes) await outbox.round(RUNNING)
    return said.map(({ message }) => message)
  }
  expect(await messages()).toEqual([])
  policies.note(store.snapshot, undefined)
  expect(await messages()).toEqual([expect.stringContaining('nothing of it is in force')])
})
