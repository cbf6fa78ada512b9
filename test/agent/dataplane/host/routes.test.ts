// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { RouteRow } from '#agent/compile/desired.ts'
import { Routes } from '#agent/dataplane/host/routes.ts'
import { NetlinkExchange, type NetlinkTransport } from '#agent/interfaces/netlink/exchange.ts'
import {
  decodeMessages,
  encodeMessage,
  NLM_F_EXCL,
  NLM_F_REPLACE,
  NLMSG_DONE,
  NLMSG_ERROR,
  type NetlinkMessage,
} from '#agent/interfaces/netlink/message.ts'
import { decodeRoute, encodeRoute } from '#agent/interfaces/netlink/route.ts'

/** The main table; routes of others have protocol 4. */
class RouteKernel implements NetlinkTransport {
  readonly port = 7
  readonly table = new Map<string, { readonly via: string; readonly protocol: number }>()
  readonly calls: string[] = []
  #queue: Buffer[] = []

  send(bytes: Uint8Array): void {
    for (const message of decodeMessages(Buffer.from(bytes))) {
      if (message.type === 26) this.#list(message)
      else this.#answer(message.seq, NLMSG_ERROR, errno(-this.#change(message)))
    }
  }

  receive(): Buffer | undefined {
    return this.#queue.shift()
  }

  receiveWait(): Buffer | undefined {
    return this.receive()
  }

  onReadable(): void {
    // the tests need no event from this one
  }

  close(): void {
    // nothing to let go of
  }

  #list(message: NetlinkMessage): void {
    const v4 = message.payload.readUInt8(0) === 2
    for (const [cidr, { via, protocol }] of this.table) {
      if (cidr.includes(':') === v4) continue
      const payload = encodeRoute(row(cidr, via))
      payload.writeUInt8(protocol, 5)
      this.#answer(message.seq, 24, payload)
    }
    this.#answer(message.seq, NLMSG_DONE, errno(0))
  }

  #change(message: NetlinkMessage): number {
    const route = decodeRoute(message.payload)
    if (route === undefined) return 22
    const key = formatCidr(route.cidr)
    const via = route.via === undefined ? '' : formatAddr(route.via)
    const flags = [message.flags & NLM_F_EXCL ? 'new' : '', message.flags & NLM_F_REPLACE ? 'replace' : ''].join('')
    this.calls.push(message.type === 25 ? `del ${key}` : `${flags} ${key} ${via}`)
    if (message.type === 25) return this.table.delete(key) ? 0 : 3
    if ((message.flags & NLM_F_EXCL) !== 0 && this.table.has(key)) return 17
    this.table.set(key, { via, protocol: route.protocol })
    return 0
  }

  #answer(seq: number, type: number, payload: Buffer): void {
    const bytes = encodeMessage({ type, flags: 0, seq, payload })
    bytes.writeUInt32LE(this.port, 12)
    this.#queue.push(bytes)
  }
}

function errno(value: number): Buffer {
  const bytes = Buffer.alloc(20)
  bytes.writeInt32LE(value)
  return bytes
}

function row(cidr: string, via: string, overlay = false): RouteRow {
  return { cidr: parseCidr(cidr), via: parseAddr(via), overlay }
}

function setup(...there: readonly [string, string, number][]) {
  const kernel = new RouteKernel()
  for (const [cidr, via, protocol] of there) kernel.table.set(cidr, { via, protocol })
  const routes = new Routes({ netlink: new NetlinkExchange(kernel), log: silentLog })
  const apply = (...wanted: RouteRow[]) => {
    const before = kernel.calls.length
    routes.setDesired(wanted)
    const gone = routes.readBack()
    const failures = [routes.writes, routes.removals].flatMap((part) => (part.pending() ? part.apply().failures : []))
    return { calls: kernel.calls.slice(before), gone, failed: failures.map((one) => one.reason) }
  }
  return { kernel, routes, apply }
}

describe('routes', () => {
  test('are added, changed in place and removed', () => {
    const { apply } = setup()
    expect(apply(row('10.1.0.0/24', '192.0.2.2'), row('fd01::/64', 'fd00::2')).calls).toEqual([
      'new 10.1.0.0/24 192.0.2.2',
      'new fd01::/64 fd00::2',
    ])
    expect(apply(row('10.1.0.0/24', '192.0.2.3'), row('fd01::/64', 'fd00::2')).calls).toEqual(['replace 10.1.0.0/24 192.0.2.3'])
    expect(apply(row('fd01::/64', 'fd00::2')).calls).toEqual(['del 10.1.0.0/24'])
  })

  test('of an earlier agent are adopted, or removed when they are not wanted', () => {
    const { apply } = setup(['10.1.0.0/24', '192.0.2.2', 80], ['10.9.0.0/24', '192.0.2.9', 80])
    expect(apply(row('10.1.0.0/24', '192.0.2.2')).calls).toEqual(['del 10.9.0.0/24'])
  })

  test('of others are neither replaced nor removed', () => {
    const { kernel, apply } = setup(['10.1.0.0/24', '192.0.2.9', 4], ['10.5.0.0/24', '192.0.2.9', 4])
    expect(apply(row('10.1.0.0/24', '192.0.2.2')).failed).toEqual([
      'netlink add route 10.1.0.0/24: a route to there exists that is not ours',
    ])
    expect([...kernel.table.values()].map((one) => one.protocol)).toEqual([4, 4])
  })

  test('that another process removed are put back once the list is stale', () => {
    const { kernel, routes, apply } = setup()
    const wanted = row('10.1.0.0/24', '192.0.2.2')
    apply(wanted)
    kernel.table.clear()
    expect(apply(wanted).calls).toEqual([])
    routes.markStale()
    expect(apply(wanted)).toMatchObject({ calls: ['new 10.1.0.0/24 192.0.2.2'], gone: 1 })
  })

  test('in the tunnel lead towards the node: to the router on the way, or to the node itself', () => {
    const { kernel, routes, apply } = setup(['0.0.0.0/0', '192.0.2.1', 4], ['203.0.113.0/24', '192.0.2.254', 4])
    const wanted = [row('10.1.0.0/24', '203.0.113.2', true), row('10.2.0.0/24', '198.51.100.2', true), row('fd01::/64', 'fd00::2', true)]
    expect(apply(...wanted).calls).toEqual(['new 10.1.0.0/24 192.0.2.254', 'new 10.2.0.0/24 192.0.2.1', 'new fd01::/64 fd00::2'])
    expect(apply(...wanted).calls).toEqual([])
    kernel.table.delete('203.0.113.0/24')
    routes.markStale()
    expect(apply(...wanted).calls).toEqual(['replace 10.1.0.0/24 192.0.2.1'])
  })

  test('to nodes beyond a router are the network’s, where there is no tunnel', () => {
    const { apply } = setup(['0.0.0.0/0', '192.0.2.1', 4])
    const [near, far] = [row('fd01::/64', 'fd00::2'), (overlay: boolean) => row('10.1.0.0/24', '203.0.113.2', overlay)]
    expect(apply(far(false), near)).toMatchObject({ calls: ['new fd01::/64 fd00::2'], failed: [] })
    expect(apply(far(true), near).calls).toEqual(['new 10.1.0.0/24 192.0.2.1'])
    expect(apply(far(false), near).calls).toEqual(['del 10.1.0.0/24'])
  })

  test('are not written before they were listed', () => {
    const { routes } = setup()
    routes.setDesired([row('10.1.0.0/24', '192.0.2.2')])
    expect(routes.writes.pending()).toBe(false)
  })
})
