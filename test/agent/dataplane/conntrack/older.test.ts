// SPDX-License-Identifier: Apache-2.0
/** What programs are told of connections that are older than they are. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { OlderConnections } from '#agent/dataplane/conntrack/older.ts'
import { TAKEOVER_MS } from '#agent/dataplane/conntrack/takeover.ts'
import type { NetlinkTransport } from '#agent/interfaces/netlink/exchange.ts'
import { encodeMessage, NLMSG_DONE, NLMSG_ERROR } from '#agent/interfaces/netlink/message.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import { bindDeclared } from '../../../support/compiled.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'
import { ListLog } from '../../../support/fakes/list-log.ts'
import { flowTypes } from '../../../support/flow-entries.ts'
import { CONNECTION_V6, TRANSLATED_CONNECTION } from '../../interfaces/netlink/captured.ts'

const codecs = bindDeclared(catalogue.np_older, flowTypes)

/** A kernel's list of connections, a piece in each turn of the event loop. */
class Connections implements NetlinkTransport {
  readonly port = 1
  closed = false
  readonly #pieces: Buffer[]
  #readable: (() => void) | undefined

  /** `error`: errno instead of a list */
  constructor(payloads: readonly Buffer[], error = 0) {
    const end = { type: error === 0 ? NLMSG_DONE : NLMSG_ERROR, payload: Buffer.from(Int32Array.of(-error).buffer) }
    const all = [...payloads.map((payload) => ({ type: 0x100, payload })), end]
    this.#pieces = all.map((message) => encodeMessage({ flags: 0, seq: 1, ...message }))
  }

  send(): void {
    const next = (): void => {
      this.#readable?.()
      if (!this.closed) setImmediate(next)
    }
    setImmediate(next)
  }

  receive(): Buffer | undefined {
    return this.#pieces.shift()
  }

  receiveWait(): never {
    throw new Error('nobody is to wait')
  }

  onReadable(callback: (() => void) | undefined): void {
    this.#readable = callback
  }

  close(): void {
    this.closed = true
  }
}

let clock: FakeClock
let log: ListLog
let map: FakeMap
let sockets: Connections[]
let kernel: () => Connections | undefined
let serves: boolean
let pods: readonly string[]
let older: OlderConnections

beforeEach(() => {
  ;[clock, log, sockets, serves, pods] = [new FakeClock(), new ListLog(), [], false, ['127.0.0.9', '::1']]
  map = new FakeMap({ name: 'np_older', keySize: codecs.key.size, valueSize: codecs.value.size, maxEntries: 8 })
  kernel = () => new Connections([TRANSLATED_CONNECTION, CONNECTION_V6])
  older = start()
})

function start(): OlderConnections {
  return new OlderConnections({
    ...{
      clock,
      log,
      monotonicMs: () => 1000,
      serves: () => serves,
      pods: () => pods.map(parseAddr),
      table: () => ({ map, btf: flowTypes }),
    },
    open: () => {
      const socket = kernel()
      if (socket !== undefined) sockets.push(socket)
      return socket
    },
  })
}

function row(src: string, dst: string): { readonly opened: boolean; readonly until: number } | undefined {
  const [a, b] = [src.split(' '), dst.split(' ')]
  const tuple = { src: parseAddr(a[0] ?? ''), sport: Number(a[1]), dst: parseAddr(b[0] ?? ''), dport: Number(b[1]) }
  const [key, direction] = flowKey(tuple, { proto: 6, lane: 0 })
  const bytes = map.lookup(encodeBytes(codecs.key, key))
  if (bytes === undefined) return undefined
  const { opener, until } = decodeBytes(codecs.value, bytes)
  return { opened: opener === direction, until }
}

async function size(): Promise<number> {
  return (await map.readChunk(undefined, 100)).count
}

const begin = (): Promise<void> => older.begin({ map, btf: flowTypes })

describe('connections of pods that are there at the first start', () => {
  test('are known by both views of one that is translated', async () => {
    pods = ['127.0.0.1', '::1']
    await begin()
    const until = 1000 + TAKEOVER_MS
    expect(row('127.0.0.1 40003', '127.0.0.9 80')).toEqual({ opened: true, until })
    expect(row('127.0.0.1 7000', '127.0.0.1 40003')).toEqual({ opened: false, until })
    expect(row('::1 40002', '::1 7001')).toEqual({ opened: true, until })
    expect(log.of('older-connections.found')).toMatchObject([{ connections: 2, entries: 3, isWhole: true, fits: true }])
    expect(sockets.map(({ closed }) => closed)).toEqual([true])
  })

  test('are those of pods alone', async () => {
    await begin()
    expect([await size(), row('127.0.0.1 40003', '127.0.0.9 80')?.opened]).toEqual([2, true])
    expect(row('127.0.0.1 7000', '127.0.0.1 40003')).toBeUndefined()
  })

  test('are looked for once more when all programs are at work, and forgotten a minute after', async () => {
    await begin()
    await older.tick()
    expect(sockets).toHaveLength(1)
    serves = true
    await older.tick()
    await older.tick()
    expect([sockets.length, await size()]).toEqual([2, 2])
    clock.advance(TAKEOVER_MS + 1)
    await older.tick()
    await older.tick()
    expect([sockets.length, await size()]).toEqual([2, 0])
  })

  test('a key of two connections with different openers is left out', async () => {
    const turned = Buffer.from(CONNECTION_V6)
    for (const [type, other] of [
      [1, 2],
      [2, 1],
    ] as const)
      turned.set([other], CONNECTION_V6.indexOf(Buffer.of(0x4c, 0, type, 0x80)) + 2)
    kernel = () => new Connections([CONNECTION_V6, turned, CONNECTION_V6])
    await begin()
    expect([log.of('older-connections.found')[0]?.['connections'], await size()]).toEqual([3, 0])
  })

  test('are forgotten in the map that takes the place of a closed one', async () => {
    serves = true
    await older.tick()
    clock.advance(TAKEOVER_MS + 1)
    map.close()
    await older.tick()
    map = new FakeMap({ name: 'np_older', keySize: codecs.key.size, valueSize: codecs.value.size, maxEntries: 8 })
    await begin()
    expect(await size()).toBe(2)
    await older.tick()
    expect([await size(), log.events]).toEqual([0, ['older-connections.found']])
  })

  test('have as much room as there is', async () => {
    map = new FakeMap({ name: 'np_older', keySize: codecs.key.size, valueSize: codecs.value.size, maxEntries: 1 })
    await begin()
    expect(log.of('older-connections.found')).toMatchObject([{ entries: 2, fits: false }])
  })

  test('that cannot be read are asked about in both directions', async () => {
    kernel = () => new Connections([], 1)
    await begin()
    expect([log.events, await size(), sockets[0]?.closed]).toEqual([['older-connections.not-found'], 0, true])
  })

  test('are waited for as long as 5 s', async () => {
    kernel = () => new Connections(Array.from({ length: 1000 }, () => CONNECTION_V6))
    const begun = begin()
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(5000)
    await begun
    expect(log.of('older-connections.found')).toMatchObject([{ isWhole: false }])
    expect(await size()).toBe(1)
  })

  test('nothing is written where the kernel tracks no connections', async () => {
    kernel = () => undefined
    await begin()
    expect([log.events, await size()]).toEqual([[], 0])
  })
})

test('an agent that comes later looks for none, and takes away what an earlier one has left', async () => {
  await begin()
  older = start()
  serves = true
  await older.tick()
  expect([sockets.length, await size()]).toEqual([1, 2])
  clock.advance(TAKEOVER_MS + 1)
  await older.tick()
  expect([sockets.length, await size()]).toEqual([1, 0])
})
