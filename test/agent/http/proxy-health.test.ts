// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { parseAddr, parsePort } from '#lib/base/ip.ts'
import { Health } from '#lib/obs/health.ts'
import type { Page } from '#lib/obs/http.ts'
import { PageServer } from '#lib/obs/http.ts'
import type { HealthCheck } from '#agent/compile/desired.ts'
import { conditionOf } from '#agent/dataplane/reconcile/reconciler.ts'
import { ANNOUNCED, ProxyHealth } from '#agent/http/proxy-health.ts'
import { asksToo } from '#agent/watch/tunnel/asks-too.ts'

function setup() {
  const time = { now: Date.UTC(2026, 0, 1) }
  const health = new Health(() => time.now)
  health.expect(conditionOf('applied'), 'readiness')
  const node = { eligible: true }
  const proxy = new ProxyHealth({ health, wall: () => time.now, eligible: () => node.eligible })
  const get = async (path: string): Promise<Page | undefined> => await proxy.nodePages[path]?.()
  const status = async (path: string): Promise<number | undefined> => (await get(path))?.status
  return { time, health, node, proxy, get, status }
}

function web(localReady: number): HealthCheck {
  return { namespace: 'default', name: 'web', port: parsePort(30000), localReady }
}

test('a service is asked over HTTP, on any path', async () => {
  const { health, proxy } = setup()
  const pages = await proxy
    .listeners([web(2)])
    .get('health-check.default/web')
    ?.pages()
  await using server = new PageServer({ host: '127.0.0.1', port: 0, pages: pages ?? {}, onError: () => undefined })
  const port = await server.start()
  const ask = async (): Promise<unknown[]> => {
    const answer = await fetch(`http://127.0.0.1:${port}/whatever`)
    const weight = answer.headers.get('X-Load-Balancing-Endpoint-Weight')
    return [answer.status, weight, answer.headers.get('content-type'), await answer.json()]
  }
  const body = (localEndpoints: number, serviceProxyHealthy: boolean): unknown => ({
    service: { namespace: 'default', name: 'web' },
    localEndpoints,
    serviceProxyHealthy,
  })
  expect(await ask()).toEqual([503, '2', 'application/json', body(2, false)])
  health.pass(conditionOf('applied'))
  // a page that cost much processor time is told again for a while: on a busy machine, any
  await expect.poll(ask).toEqual([200, '2', 'application/json', body(2, true)])
  proxy.listeners([web(0)])
  await expect.poll(ask).toEqual([503, '0', 'application/json', body(0, true)])
})

test('the proxy is healthy once it is ready, and after that for a minute of grace', async () => {
  const { time, health, status } = setup()
  expect([await status('/healthz'), await status('/livez')]).toEqual([503, 503])
  health.pass(conditionOf('applied'))
  expect([await status('/healthz'), await status('/livez')]).toEqual([200, 200])
  health.fail('dataplane.hooks', 'a pod')
  health.fail('dataplane.frontends', 'map full')
  time.now += 59_000
  expect(await status('/livez')).toBe(200)
  time.now += 2_000
  expect(await status('/livez')).toBe(503)
  health.pass('dataplane.frontends')
  expect(await status('/livez')).toBe(200)
})

test('another node’s agent learns here, whether the proxy is healthy or not, that this one asks about the tunnel', async () => {
  const { proxy } = setup()
  await using server = new PageServer({ host: '127.0.0.1', port: 0, pages: proxy.nodePages, onError: () => undefined })
  const port = await server.start()
  const addr = parseAddr('127.0.0.1')
  const peer = { name: 'a', family: 'IPv4', source: addr, address: addr } as const
  expect(await asksToo(peer, port)).toBe(false)
  proxy.probes = true
  // a page that cost much processor time is told again for a while
  await expect.poll(() => asksToo(peer, port)).toBe(true)
  await server[Symbol.asyncDispose]()
  expect([await asksToo(peer, port), await asksToo(peer, 0)]).toEqual([false, false])
})

test('the page says when the proxy was last healthy', async () => {
  const { time, health, get } = setup()
  health.pass(conditionOf('applied'))
  await get('/livez')
  time.now += 5_000
  health.expect('moves', 'liveness')
  health.fail('moves', 'stuck')
  const page = await get('/healthz')
  expect([page?.status, JSON.parse(page?.body ?? '')]).toEqual([
    503,
    { lastUpdated: '2026-01-01T00:00:00.000Z', currentTime: '2026-01-01T00:00:05.000Z', healthy: false, nodeEligible: true },
  ])
})

test('a node that is being taken away wants no new connections, but its proxy lives', async () => {
  const { health, node, get, status } = setup()
  health.pass(conditionOf('applied'))
  node.eligible = false
  expect([await status('/healthz'), await status('/livez')]).toEqual([503, 200])
  expect(JSON.parse((await get('/healthz'))?.body ?? '')).toMatchObject({ nodeEligible: false })
})

test('the page is 503 until other nodes know this one, and 200 where no announcement is needed', async () => {
  const { health, status } = setup()
  health.pass(conditionOf('applied'))
  expect(await status('/healthz')).toBe(200)
  health.expect(ANNOUNCED, 'none')
  expect(await status('/healthz')).toBe(503)
  health.pass(ANNOUNCED)
  expect(await status('/healthz')).toBe(200)
})
