// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server } from 'node:net'
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { Listeners, type Listener } from '#agent/http/listeners.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { freePort } from '../../../testkit/base/free-port.ts'

function setup() {
  const clock = new FakeClock()
  const health = new Health(() => clock.wall())
  const listeners = new Listeners({ condition: 'ports', clock, health, log: silentLog })
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === 'ports')?.reason
  const set = (wanted: Readonly<Record<string, number>>): void => {
    listeners.set(new Map(Object.entries(wanted).map(([name, port]) => [name, saying(name, port)])))
  }
  return { clock, health, listeners, reason, set }
}

/** Answers with its name, on every address and every path. */
function saying(name: string, port: number): Listener {
  return { host: undefined, port, pages: () => ({ '*': () => ({ status: 200, type: 'text/plain', body: name }) }) }
}

/** A server that holds a port. */
async function holder(): Promise<{ readonly server: Server; readonly port: number }> {
  const [server, port] = [createServer(), await freePort()]
  await new Promise<void>((resolve) => server.listen(port, resolve))
  return { server, port }
}

function release(server: Server): Promise<unknown> {
  return new Promise((resolve) => server.close(resolve))
}

async function said(port: number, host = '127.0.0.1'): Promise<string | undefined> {
  return fetch(`http://${host}:${port}/any/path`).then(
    (answer) => answer.text(),
    () => undefined,
  )
}

test('servers open, move, exchange their ports and close as they are wanted', async () => {
  const { listeners, reason, set } = setup()
  const [one, two] = [await freePort(), await freePort()]
  {
    await using stack = new AsyncDisposableStack()
    stack.use(listeners)
    set({ a: one, b: two })
    await expect.poll(async () => [await said(one), await said(two)]).toEqual(['a', 'b'])
    expect(await said(one, '[::1]')).toBe('a')
    set({ a: two, b: one })
    await expect.poll(async () => [await said(one), await said(two)]).toEqual(['b', 'a'])
    set({ a: two })
    await expect.poll(async () => [await said(one), await said(two)]).toEqual([undefined, 'a'])
    expect(reason()).toBe('')
  }
  expect(await said(two)).toBeUndefined()
})

test('a port in use is a condition with its reason, stops no other listener, and is taken once free', async () => {
  const { clock, health, listeners, reason, set } = setup()
  await using stack = new AsyncDisposableStack()
  stack.use(listeners)
  const { server, port } = await holder()
  const other = await freePort()
  set({ a: port, b: other })
  await expect.poll(reason).toMatch(/^a: .*EADDRINUSE/)
  expect([health.report().ready, await said(other)]).toEqual([true, 'b'])
  await release(server)
  clock.advance(15_000)
  await expect.poll(() => said(port)).toBe('a')
  await expect.poll(reason).toBe('')
  expect(clock.pending).toBe(0)
})

test('a port that is refused and then not wanted any more is no condition', async () => {
  const { clock, listeners, reason, set } = setup()
  await using stack = new AsyncDisposableStack()
  stack.use(listeners)
  const { server, port } = await holder()
  set({ a: port })
  await expect.poll(reason).toMatch(/EADDRINUSE/)
  set({})
  await expect.poll(reason).toBe('')
  expect(clock.pending).toBe(0)
  await release(server)
})
