// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { parsePort } from '#lib/base/ip.ts'
import { Health } from '#lib/obs/health.ts'
import { Metrics } from '#lib/obs/metrics.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { listening, ownListeners, policyPages } from '#agent/http/pages.ts'
import { healthPages, metricsPages } from '#lib/obs/pages.ts'

const pages = () => ({})

test.each([
  ['nothing is configured', {}, ['health 127.0.0.1:9099', 'proxy-health *:10256']],
  [
    'flags set ports',
    { healthPort: parsePort(1234), metricsPort: parsePort(1235) },
    ['health 127.0.0.1:1234', 'metrics 127.0.0.1:1235', 'proxy-health *:10256'],
  ],
  ['flags turn them off', { healthPort: 0, metricsPort: 0 }, ['proxy-health *:10256']],
  ['the proxy\u2019s health is not to be served', { proxyHealthPort: 0 }, ['health 127.0.0.1:9099']],
] as const)('when %s', (_, flags, expected) => {
  const wanted = ownListeners(
    listening(
      { healthPort: undefined, metricsPort: undefined, ...flags },
      { ...defaultConfig, ...flags, prometheus: { ...defaultConfig.prometheus, host: '127.0.0.1' } },
    ),
    { health: pages, metrics: pages, 'proxy-health': pages },
  )
  expect([...wanted].map(([name, { host, port }]) => `${name} ${host ?? '*'}:${port}`)).toEqual(expected)
})

test('until there is a configuration only health is served', () => {
  const none = listening({ healthPort: undefined, metricsPort: undefined }, undefined)
  expect([...ownListeners(none, { health: pages, metrics: pages, 'proxy-health': pages }).keys()]).toEqual(['health'])
})

test('what there is nothing to serve of has no listener', () => {
  const all = listening({ healthPort: parsePort(1), metricsPort: parsePort(2) }, { ...defaultConfig, proxyHealthPort: 0 })
  expect([...ownListeners(all, { health: pages, metrics: undefined, 'proxy-health': pages }).keys()]).toEqual(['health'])
})

test('health follows the conditions', async () => {
  const health = new Health(() => 0)
  health.expect('programs', 'readiness')
  const status = async (path: string): Promise<number | undefined> => (await healthPages(health)[path]?.())?.status
  expect([await status('/liveness'), await status('/readiness')]).toEqual([200, 503])
  health.pass('programs')
  expect(await status('/readiness')).toBe(200)
})

test('the page of rules by number shows them as they are at the request', async () => {
  const names = new Map([[7, 'Tier/default ingress end']])
  const page = policyPages(() => names)['/policy/rules']
  names.set(9, 'b')
  expect(JSON.parse((await page?.())?.body ?? '')).toEqual({ 7: 'Tier/default ingress end', 9: 'b' })
})

test('metrics are made once, and read for each request', async () => {
  const made: Metrics[] = []
  const read = (await metricsPages(() => Promise.resolve(made[made.push(new Metrics()) - 1] ?? new Metrics())))['/metrics']
  made[0]?.gauge({ name: 'one', help: '-', labels: [] }, () => [{ labels: {}, value: 1 }])
  expect([(await read?.())?.body, made.length]).toEqual([expect.stringContaining('one 1'), 1])
})
