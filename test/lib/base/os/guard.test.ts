// SPDX-License-Identifier: Apache-2.0
import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { Guard, type Client, type Guest } from '#lib/base/os/guard.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

class Connection extends EventEmitter {
  readonly remoteAddress: string
  destroyed = false

  constructor(remoteAddress: string) {
    super()
    this.remoteAddress = remoteAddress
  }

  resetAndDestroy(): this {
    return this.destroy()
  }

  destroy(): this {
    this.destroyed = true
    queueMicrotask(() => this.emit('close'))
    return this
  }
}

const LIMITS = { most: 6, perPeer: 3, perSecond: 100, sayMs: 2000 }

class World {
  readonly clock = new FakeClock()
  readonly guard: Guard<Connection & Client>
  readonly served: Guest<Connection & Client>[] = []

  constructor(limits: Partial<typeof LIMITS> = {}) {
    this.guard = new Guard({ ...LIMITS, ...limits }, this.clock)
  }

  /** One after the other. */
  connect(...from: readonly string[]): readonly Connection[] {
    return from.map((address) => {
      const connection = new Connection(address)
      this.guard.admit(connection as Connection & Client, (guest) => this.served.push(guest))
      return connection
    })
  }
}

function gone(connections: readonly Connection[]): readonly boolean[] {
  return connections.map(({ destroyed }) => destroyed)
}

test('an address that has its share loses the connection that has said nothing for longest', () => {
  const world = new World()
  const connections = world.connect('10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.1', '10.0.0.1')
  expect(gone(connections)).toEqual([true, false, false, false, false])
  expect(world.guard.size).toBe(4)
})

test('of all addresses together that connection goes which has said nothing for longest', () => {
  const world = new World()
  const connections = world.connect('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6', '10.0.0.7')
  expect(gone(connections)).toEqual([true, false, false, false, false, false, false])
})

test('what is being answered stays, and an address that has nothing else is refused', () => {
  const world = new World()
  const before = world.connect('10.0.0.1', '10.0.0.1', '10.0.0.1')
  for (const { busy } of world.served) busy()
  expect(gone(world.connect('10.0.0.1', '10.0.0.2'))).toEqual([true, false])
  world.served[1]?.idle(2000)
  expect(gone(world.connect('10.0.0.1'))).toEqual([false])
  expect(gone(before)).toEqual([false, true, false])
})

test('clients of the node itself may have all connections, whichever family they use', () => {
  const world = new World()
  for (const address of ['127.0.0.1', '127.0.0.53', '::1', '::ffff:127.0.0.1', ''])
    expect(gone(world.connect(address, address, address, address))).toEqual([false, false, false, false])
})

test('a client that has not said what it wants in time is cut off', () => {
  const world = new World()
  const [silent, asking] = world.connect('10.0.0.1', '10.0.0.1')
  world.served[1]?.busy()
  world.clock.advance(1999)
  expect(silent?.destroyed).toBe(false)
  world.clock.advance(1)
  expect([silent?.destroyed, asking?.destroyed]).toEqual([true, false])
})

test('an address that comes too often waits for its turn, and is cut off beyond a second; others do not wait', () => {
  const world = new World({ most: 1000, perPeer: 1000 })
  const connections = world.connect(...Array.from({ length: 400 }, () => '10.0.0.1'))
  expect(world.served).toHaveLength(200)
  expect(gone(connections).filter((isGone) => isGone)).toHaveLength(100)
  expect(world.connect('10.0.0.2').length + world.served.length).toBe(202)
  world.clock.advance(500)
  expect(world.served).toHaveLength(251)
})

test('clients of the node itself wait as well, but are never refused for their rate', () => {
  const world = new World({ most: 1000, perPeer: 1 })
  const connections = world.connect(...Array.from({ length: 400 }, () => '127.0.0.1'))
  expect([world.served.length, gone(connections).includes(true)]).toEqual([300, false])
})

test('those that wait for their turn give way to other addresses', () => {
  const world = new World({ most: 5, perPeer: 4, perSecond: 1 })
  const first = world.connect('10.0.0.1', '10.0.0.1')
  for (const { busy } of world.served) busy()
  const waiting = world.connect('10.0.0.1')
  expect(gone(world.connect('10.0.0.2', '10.0.0.2'))).toEqual([false, false])
  for (const { busy } of world.served) busy()
  expect(gone([...first, ...waiting, ...world.connect('10.0.0.3')])).toEqual([false, false, true, false])
})

test('connections that have closed leave no trace', async () => {
  const world = new World()
  for (const connection of world.connect('10.0.0.1', '10.0.0.2', '10.0.0.2')) connection.destroy()
  await Promise.resolve()
  expect(world.guard.size).toBe(0)
  expect(gone(world.connect('10.0.0.2', '10.0.0.2', '10.0.0.2'))).toEqual([false, false, false])
})
