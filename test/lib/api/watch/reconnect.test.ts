// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { setImmediate } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { Reconnect, type Lost } from '#lib/api/watch/reconnect.ts'
import type { Transport } from '#lib/api/connection/transport.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

let clock: FakeClock
let link: Reconnect
/** when a connection was made */
let made: number[]
let said: (Lost | undefined)[]
let connected: Transport['connected']
/** addresses of connections that were given up */
let left: string[]
beforeEach(() => {
  clock = new FakeClock()
  made = []
  said = []
  connected = undefined
  left = []
  const transport = {
    connect: (): Promise<void> => {
      made.push(clock.now())
      return Promise.resolve()
    },
    drop: (): Promise<void> => {
      left.push(connected?.address ?? '')
      connected = undefined
      return Promise.resolve()
    },
    get connected() {
      return connected
    },
  }
  const onChange = (): void => {
    said.push(link.lost)
  }
  link = new Reconnect({ transport, clock, backoff: { firstMs: 1000, maxMs: 8000 }, onChange })
})

/** The connection ends, and there is another. */
async function lose(): Promise<void> {
  const before = made.length
  const restored = link.restored('it ended', new AbortController().signal)
  for (await setImmediate(); made.length === before; await setImmediate()) clock.advance(10)
  await restored
}

test('connections that do not last are made less and less often, and reported', async () => {
  for (let time = 0; time < 5; time++) await lose()
  const pauses = made.slice(1).map((at, index) => at - (made[index] ?? 0))
  for (const [index, most] of [1000, 2000, 4000, 8000].entries()) {
    expect(pauses[index]).toBeGreaterThanOrEqual(most * 0.75)
    expect(pauses[index]).toBeLessThanOrEqual(most + 10)
  }
  const lost = { reason: 'it ended', since: 1_000_000, brief: true }
  expect(said).toEqual([lost, undefined, lost, undefined, lost, undefined])
})

test('a connection that has lasted is made again at once', async () => {
  await lose()
  clock.advance(5000)
  await lose()
  expect(made).toEqual([0, 5000])
  expect(said).toEqual([])
})

/** The server at the address answers badly. */
async function leave(address: string): Promise<void> {
  connected = { address, protocol: 'h2', localAddress: '192.0.2.1' }
  await link.leave(connected, 'HTTP 500')
}

test('an address is left once in ten minutes, whatever others are left in between', async () => {
  for (const address of ['192.0.2.10', '192.0.2.10', '192.0.2.11', '192.0.2.10', '192.0.2.11']) await leave(address)
  expect(left).toEqual(['192.0.2.10', '192.0.2.11'])
  clock.advance(599_999)
  await leave('192.0.2.10')
  expect(left).toHaveLength(2)
  clock.advance(1)
  await leave('192.0.2.10')
  await leave('192.0.2.10')
  expect(left.slice(2)).toEqual(['192.0.2.10'])
})

test('an address that was lost and found again in between is not left again', async () => {
  await leave('192.0.2.10')
  await lose()
  await leave('192.0.2.10')
  expect(left).toHaveLength(1)
})

test('an answer that comes late says nothing of the connection that there is now', async () => {
  const before = { address: '192.0.2.10', protocol: 'h2', localAddress: '192.0.2.1' } as const
  connected = { ...before }
  await link.leave(before, 'HTTP 500')
  expect(left).toEqual([])
})
