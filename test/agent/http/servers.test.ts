// SPDX-License-Identifier: Apache-2.0
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { Metrics } from '#lib/obs/metrics.ts'
import { defaultConfig, type Config } from '#agent/config/config.ts'
import { HttpServers } from '#agent/http/servers.ts'
import { freePort } from '../../../testkit/base/free-port.ts'

const NO_REDIRECTS = { set: () => Promise.resolve(false), end: () => Promise.resolve(false) }

test('metrics are made once, however often their port is refused, given up and had again', async () => {
  const holder = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => holder.listen(port, '127.0.0.1', resolve))
  let made = 0
  await using ports = new HttpServers({
    ...{ options: { healthPort: 0, metricsPort: undefined }, health: new Health(() => 0), log: silentLog },
    ruleNames: () => new Map(),
    more: {},
    eligible: () => true,
    ...{ redirects: NO_REDIRECTS, listening: () => new Set() },
  })
  ports.serveMetrics(() => {
    made++
    return Promise.resolve(new Metrics())
  })
  const wants = (enabled: boolean): Config => ({
    ...defaultConfig,
    proxyHealthPort: 0,
    prometheus: { ...defaultConfig.prometheus, enabled, host: '127.0.0.1', port },
  })
  const status = (): Promise<number | undefined> =>
    fetch(`http://127.0.0.1:${port}/metrics`).then(
      (answer) => answer.status,
      () => undefined,
    )
  ports.configure(wants(true))
  await expect.poll(() => made).toBe(1)
  await new Promise((resolve) => holder.close(resolve))
  await expect.poll(status).toBe(200)
  ports.configure(wants(false))
  await expect.poll(status).toBeUndefined()
  ports.configure(wants(true))
  await expect.poll(status).toBe(200)
  expect(made).toBe(1)
})

test('ports of kube-proxy are left to one that is to run on the node, and redirected until it has them', async () => {
  const [redirected, listening] = [new Array<readonly number[]>(), new Set<number>()]
  const set = (ports: ReadonlyMap<number, number>): Promise<boolean> => {
    redirected.push([...ports.keys()])
    return Promise.resolve(true)
  }
  await using ports = new HttpServers({
    ...{ options: { healthPort: 0, metricsPort: undefined }, health: new Health(() => 0), log: silentLog },
    ruleNames: () => new Map(),
    more: {},
    eligible: () => true,
    ...{ redirects: { ...NO_REDIRECTS, set }, listening: () => listening },
  })
  const [node, service] = [await freePort(), await freePort()]
  const answers = (): Promise<readonly boolean[]> =>
    Promise.all(
      [node, service].map((port) =>
        fetch(`http://127.0.0.1:${port}/healthz`).then(
          () => true,
          () => false,
        ),
      ),
    )
  ports.configure({ ...defaultConfig, proxyHealthPort: node })
  ports.setHealthChecks([{ namespace: 'default', name: 'web', port: service, localReady: 1 }])
  await expect.poll(answers).toEqual([true, true])
  ports.setProxy(true)
  await expect.poll(answers).toEqual([false, false])
  expect(redirected).toEqual([[node, service]])
  ports.setHealthChecks([{ namespace: 'default', name: 'web', port: service, localReady: 2 }])
  ports.configure({ ...defaultConfig, proxyHealthPort: node })
  expect(await answers()).toEqual([false, false])
  listening.add(node)
  await expect.poll(() => redirected).toEqual([[node, service], [service]])
  ports.setHealthChecks([])
  await expect.poll(() => redirected).toEqual([[node, service], [service], []])
  ports.setHealthChecks([{ namespace: 'default', name: 'web', port: service, localReady: 2 }])
  ports.setProxy(false)
  await expect.poll(answers).toEqual([true, true])
})

test('what the agent did not serve it does not redirect to itself', async () => {
  const redirected: unknown[] = []
  await using ports = new HttpServers({
    ...{ options: { healthPort: 0, metricsPort: undefined }, health: new Health(() => 0), log: silentLog },
    ruleNames: () => new Map(),
    more: {},
    eligible: () => true,
    ...{ redirects: { ...NO_REDIRECTS, set: () => Promise.resolve(redirected.push(1) > 0) }, listening: () => new Set() },
  })
  ports.setProxy(true)
  ports.configure({ ...defaultConfig, proxyHealthPort: await freePort() })
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(redirected).toEqual([])
})
