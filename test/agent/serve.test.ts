// SPDX-License-Identifier: Apache-2.0
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { parsePort } from '#lib/base/ip.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog, type Log } from '#lib/obs/log.ts'
import { Metrics } from '#lib/obs/metrics.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { Endpoints, listening } from '#agent/serve.ts'

test.each([
  ['nothing is said', {}, '127.0.0.1:9099 127.0.0.1:undefined'],
  ['flags say', { healthPort: parsePort(1234), metricsPort: parsePort(1235) }, '127.0.0.1:1234 127.0.0.1:1235'],
  ['flags say off', { healthPort: 0, metricsPort: 0 }, '127.0.0.1:undefined 127.0.0.1:undefined'],
] as const)('when %s', (_, flags, expected) => {
  const { health, metrics } = listening(
    { healthPort: undefined, metricsPort: undefined, ...flags },
    { ...defaultConfig, prometheus: { ...defaultConfig.prometheus, host: '127.0.0.1' } },
  )
  expect(`${health.host}:${String(health.port)} ${metrics.host}:${String(metrics.port)}`).toBe(expected)
})

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

test('health follows the conditions, moves when told to, and a port that is taken stops nobody', async () => {
  const health = new Health(() => 0)
  health.expect('programs', 'readiness')
  const said: string[] = []
  const note = (_: object, event: string): void => {
    said.push(event)
  }
  const log: Log = { ...silentLog, info: note, error: note }
  const [first, second] = [await freePort(), await freePort()]
  const off = { host: '127.0.0.1', port: undefined }
  const at = (port: number) => ({ host: '127.0.0.1', port })
  const status = async (port: number, path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}/${path}`)).status
  {
    await using endpoints = new Endpoints({ health, log, metrics: () => Promise.resolve(new Metrics()) })
    endpoints.set({ health: at(first), metrics: off })
    await expect.poll(() => said).toContain('health.listening')
    expect([await status(first, 'liveness'), await status(first, 'readiness')]).toEqual([200, 503])
    health.pass('programs')
    expect(await status(first, 'readiness')).toBe(200)
    endpoints.set({ health: at(second), metrics: at(second) })
    await expect.poll(() => said).toContain('metrics.not-listening')
    expect(await status(second, 'liveness')).toBe(200)
    await expect(status(first, 'liveness')).rejects.toThrow()
  }
  await expect(status(second, 'liveness')).rejects.toThrow()
})
