// SPDX-License-Identifier: Apache-2.0
/** Which server an operator asks that starts with an endpoint that is wrong. Layer: test. */
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { UnreachableError } from '#lib/api/errors.ts'
import { originOf, type ApiServer } from '#lib/api/connection/server.ts'
import { chosenServer, firstAnswering, serversOfPod, whileSilent } from '#lib/control/api-server.ts'

const SERVICE = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
const { signal } = new AbortController()

function found(env: Readonly<Record<string, string>>): { readonly servers: readonly ApiServer[]; readonly told: readonly string[] } {
  const told: string[] = []
  const servers = serversOfPod({ ...SERVICE, ...env }, (text) => {
    told.push(text)
  })
  return { servers, told }
}

interface Row {
  readonly name: string
  readonly env: Readonly<Record<string, string>>
  readonly origins: readonly string[]
  readonly told: number
}

test.each<Row>([
  {
    ...{ name: 'the endpoint goes first', env: { CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '6443' } },
    ...{ origins: ['https://api:6443', 'https://10.96.0.1:443'], told: 0 },
  },
  { name: 'no config map', env: {}, origins: ['https://10.96.0.1:443'], told: 0 },
  {
    ...{ name: 'a port that is none', env: { CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: 'x' } },
    ...{ origins: ['https://10.96.0.1:443'], told: 1 },
  },
])('$name', ({ env, origins, told }) => {
  const { servers, told: lines } = found(env)
  expect({ origins: servers.map(originOf), told: lines.length }).toEqual({ origins, told })
})

test('that which answers is used, and what is passed over is told', async () => {
  const { servers } = found({ CLUSTER_SERVICE_HOST: 'https', CLUSTER_SERVICE_PORT: '6443' })
  const told: string[] = []
  const asked: string[] = []
  const server = await firstAnswering(servers, {
    clock: { ...systemClock, sleep: () => Promise.resolve() },
    tell: (text) => told.push(text),
    signal,
    ask: ({ host }) => {
      asked.push(host)
      return asked.length < 4 ? Promise.reject(new UnreachableError('away')) : Promise.resolve()
    },
  })
  expect(server.host).toBe('10.96.0.1')
  expect(asked).toEqual(['https', '10.96.0.1', 'https', '10.96.0.1'])
  expect(told).toEqual(['https://https:6443: away', 'https://10.96.0.1:443: away', 'https://https:6443: away'])
})

test('one that is not the choice of a config map is asked as well, and says so', async () => {
  const { servers } = found({})
  const [server] = servers
  expect(server?.byService).toMatch(/^no CLUSTER_SERVICE_HOST was in config map/)
  expect(await firstAnswering(servers, { clock: systemClock, tell: () => undefined, signal, ask: () => Promise.resolve() })).toBe(server)
})

test('of a map that had another endpoint nothing says that there was none', () => {
  const { servers } = found({ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '6443' })
  expect(servers.map(({ byService }) => byService)).toEqual([undefined, undefined])
})

test('when none answers for long enough it ends, as the next start has the config map anew', async () => {
  const { servers } = found({ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '6443' })
  let now = 0
  const sleep = (ms: number): Promise<void> => {
    now += ms
    return Promise.resolve()
  }
  let asked = 0
  const ask = (): Promise<never> => {
    asked += 1
    return Promise.reject(new UnreachableError('away'))
  }
  const clock = { ...systemClock, now: () => now, sleep }
  await expect(firstAnswering(servers, { clock, giveUpMs: 3000, tell: () => undefined, signal, ask })).rejects.toThrow(
    'no API server answers at https://api:6443 and https://10.96.0.1:443 for 3 s: put right the config map cluster-services-endpoint',
  )
  expect(asked).toBe(8)
})

test('before each connection that one is chosen which answers, the endpoint where both do', async () => {
  const { servers } = found({ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '6443' })
  const [first] = servers
  if (first === undefined) throw new Error('no server')
  const away = new Set<string>()
  const told: string[] = []
  const ask = ({ host }: ApiServer): Promise<void> => (away.has(host) ? Promise.reject(new UnreachableError('away')) : Promise.resolve())
  const server = chosenServer(servers, { first, tell: (text) => told.push(text), ask })
  const chosen = async (...gone: readonly string[]): Promise<string> => {
    away.clear()
    for (const host of gone) away.add(host)
    await server.renew?.(false)
    return originOf(server)
  }
  expect(await chosen()).toBe('https://api:6443')
  expect(await chosen('api')).toBe('https://10.96.0.1:443')
  expect(told).toEqual(['https://api:6443: away'])
  expect(await chosen('api', '10.96.0.1')).toBe('https://10.96.0.1:443')
  expect(await chosen()).toBe('https://api:6443')
  // there is no other
  expect(chosenServer([first], { first, tell: () => undefined, ask })).toBe(first)
})

test('a connection that says nothing is given up, then the process; what a kubeconfig names is not', async () => {
  const { servers } = found({ CLUSTER_SERVICE_HOST: 'api', CLUSTER_SERVICE_PORT: '6443' })
  const [server] = servers
  if (server === undefined) throw new Error('no server')
  const dropped: string[] = []
  const transport = { origin: 'https://api:6443', drop: ({ message }: Error) => Promise.resolve(void dropped.push(message)) }
  const inPod = whileSilent({ server, pod: { all: servers, at: () => server } }, { transport })
  await inPod(4000)
  expect(dropped).toEqual([])
  await inPod(12_000)
  expect(dropped).toEqual(['https://api:6443 says nothing'])
  await expect(inPod(60_000)).rejects.toThrow('no API server answers at https://api:6443 and https://10.96.0.1:443 for 40 s')
  await whileSilent({ server }, { transport })(600_000)
  expect(dropped).toHaveLength(1)
})
