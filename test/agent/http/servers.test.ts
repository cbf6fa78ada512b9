// SPDX-License-Identifier: Apache-2.0
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { Metrics } from '#lib/obs/metrics.ts'
import { defaultConfig, type Config } from '#agent/config/config.ts'
import { HttpServers } from '#agent/http/servers.ts'
import { freePort } from '../../../testkit/base/free-port.ts'

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
