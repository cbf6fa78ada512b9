// SPDX-License-Identifier: Apache-2.0
/** Whether the endpoint that agents use still answers. Layer: test. */
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { EndpointWatch, type EndpointWatchOptions } from '#operator/run/endpoint-watch.ts'

const A = { host: 'a', port: '6443' }
const B = { host: 'b', port: '6443' }
const at: EndpointWatchOptions['at'] = ({ host, port }) => inCluster({ env: { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port } })

/** What is told after each look; before each of them `step` changes what is. */
async function looks(times: number, { step, more = {} }: { readonly step: (at: number, world: World) => void; readonly more?: object }) {
  const stop = new AbortController()
  const told: (string | undefined)[] = []
  const asked: string[] = []
  let changes = 0
  let count = 0
  const world: World = { away: new Set(), origin: 'https://10.96.0.1:443', use: (endpoint) => watch.use(endpoint) }
  const watch: EndpointWatch = new EndpointWatch({
    at,
    origin: () => world.origin,
    ask: ({ host }) => {
      asked.push(host)
      return Promise.resolve(world.away.has(host) ? `${host}: away` : undefined)
    },
    onChange: () => {
      changes += 1
    },
    clock: {
      ...systemClock,
      sleep: () => {
        told.push(watch.silent)
        count += 1
        if (count === times) stop.abort()
        else step(count, world)
        return Promise.resolve()
      },
    },
    ...more,
  })
  step(0, world)
  await watch.run(stop.signal)
  return { told, asked, changes }
}

interface World {
  readonly away: Set<string>
  origin: string
  readonly use: EndpointWatch['use']
}

test('one that fails twice is told, until it answers; another one begins anew', async () => {
  const step = (at: number, { away, use }: World): void => {
    if (at === 0) use(A)
    if (at === 1) away.add('a')
    if (at === 4) away.delete('a')
    if (at === 5) away.add('a')
    if (at === 7) use(B)
  }
  const { told, asked, changes } = await looks(9, { step })
  expect(told).toEqual([undefined, undefined, 'a: away', 'a: away', undefined, undefined, 'a: away', undefined, undefined])
  expect(asked.slice(-2)).toEqual(['b', 'b'])
  expect(changes).toBe(3)
})

test.each<readonly [string, (at: number, world: World) => void, object]>([
  ['there is none in use', () => undefined, {}],
  [
    'the operator itself is served by it',
    (_, world) => {
      world.use(A)
      world.origin = 'https://a:6443'
    },
    {},
  ],
  ['the process is of no pod', (_, { use }) => use(A), { at: undefined }],
])('nothing is asked where %s', async (_, step, more) => {
  expect((await looks(2, { step, more })).asked).toEqual([])
})
