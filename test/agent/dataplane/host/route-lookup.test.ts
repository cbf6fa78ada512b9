// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { formatAddr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { routeLookupOf } from '#agent/dataplane/host/route-lookup.ts'
import type { RouteMessage } from '#agent/interfaces/netlink/route.ts'

function route(cidr: string, device: number, more: { readonly via?: string; readonly priority?: number } = {}): RouteMessage {
  const via = more.via === undefined ? undefined : parseAddr(more.via)
  return { cidr: parseCidr(cidr), table: 254, protocol: 2, via, device, priority: more.priority ?? 0 }
}

test('the route of the longest prefix wins, then that of the smallest priority', () => {
  const routes = [
    route('0.0.0.0/0', 2, { via: '192.0.2.1', priority: 100 }),
    route('0.0.0.0/0', 3, { via: '198.51.100.1', priority: 200 }),
    route('192.0.2.0/24', 2),
    route('203.0.113.0/24', 4, { via: '192.0.2.254' }),
    route('::/0', 3, { via: 'fe80::1' }),
    route('fd00::/64', 5),
  ]
  const asked = ['192.0.2.9', '203.0.113.9', '8.8.8.8', 'fd00::9', '2001:db8::1'].map(parseAddr)
  const { hops, defaults } = routeLookupOf(routes, asked)
  expect([...hops].map(([addr, { gateway, device }]) => `${formatAddr(addr)} ${formatAddr(gateway)} ${device}`)).toEqual([
    '192.0.2.9 192.0.2.9 2',
    '203.0.113.9 192.0.2.254 4',
    '8.8.8.8 192.0.2.1 2',
    'fd00::9 fd00::9 5',
    '2001:db8::1 fe80::1 3',
  ])
  expect(defaults).toEqual([2, 3])
  expect(routeLookupOf([], asked)).toEqual({ hops: new Map(), defaults: [] })
})

test('a route of the other family leads nowhere', () => {
  const asked = ['192.0.2.9', 'fd00::9'].map(parseAddr)
  const { hops } = routeLookupOf([route('::/0', 3, { via: 'fe80::1' })], asked)
  expect([...hops.keys()].map(formatAddr)).toEqual(['fd00::9'])
  expect(routeLookupOf([route('0.0.0.0/0', 3)], asked).hops.size).toBe(1)
})
