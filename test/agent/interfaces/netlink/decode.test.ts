// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { decodeAddr } from '#agent/interfaces/netlink/addr.ts'
import { decodeLink } from '#agent/interfaces/netlink/link.ts'
import { decodeError, decodeMessages, type NetlinkMessage } from '#agent/interfaces/netlink/message.ts'
import { decodeRoute, routeProtocol } from '#agent/interfaces/netlink/route.ts'
import { CLSACT_PARENT, decodeFilter, decodeQdisc } from '#agent/interfaces/netlink/tc.ts'
import * as captured from './captured.ts'

function only(datagram: Buffer): NetlinkMessage {
  const [message, ...more] = decodeMessages(datagram)
  if (message === undefined || more.length > 0) throw new Error('not exactly one message')
  return message
}

describe('what the kernel sent is understood', () => {
  test('a veth that is up', () => {
    expect(decodeLink(only(captured.VETH_LINK).payload)).toEqual({
      index: 3,
      up: true,
      running: true,
      loopback: false,
      name: 'npl0123456789a',
      mtu: 1500,
      mac: '02:00:00:00:00:01',
      kind: 'veth',
      master: 0,
    })
  })

  test('a device without a link-layer address that is down', () => {
    expect(decodeLink(only(captured.TUN_LINK).payload)).toMatchObject({ name: 'tt', up: false, running: false, mac: undefined, kind: 'tun' })
  })

  test('a port that leaves its bridge is no interface that goes', () => {
    const message = only(captured.BRIDGE_PORT_REMOVED)
    expect(message.type).toBe(17)
    expect(decodeLink(message.payload)).toBeUndefined()
  })

  test.each([
    ['IPv4', captured.ADDR_V4, '10.1.2.3', 24, 0],
    ['IPv4 with a peer: our own end counts', captured.ADDR_V4_PEER, '10.9.0.1', 32, 0],
    ['IPv6', captured.ADDR_V6, 'fd00::5', 64, 0],
    ['IPv6 link-local', captured.ADDR_V6_LINK, 'fe80::d0ed:cff:fe04:9db3', 64, 253],
  ])('an address: %s', (_, datagram, addr, bits, scope) => {
    const decoded = decodeAddr(only(datagram).payload)
    expect(decoded && { ...decoded, addr: formatAddr(decoded.addr) }).toMatchObject({ addr, bits, scope, duplicate: false })
  })

  test.each([
    ['the default route', captured.ROUTE_DEFAULT, '0.0.0.0/0', '10.1.2.1', 3],
    ['one of ours', captured.ROUTE_OURS, '10.7.0.0/16', '10.1.2.9', 80],
    ['one with several next hops', captured.ROUTE_MULTIPATH, '10.8.0.0/16', undefined, 80],
    ['IPv6', captured.ROUTE_V6, 'fd07::/48', 'fd00::9', 80],
  ])('a route: %s', (_, datagram, cidr, via, protocol) => {
    const { payload } = only(datagram)
    const route = decodeRoute(payload)
    expect(route && { cidr: formatCidr(route.cidr), via: route.via && formatAddr(route.via), protocol: route.protocol, table: route.table }).toEqual({ cidr, via, protocol, table: 254 })
    expect(routeProtocol(payload)).toBe(protocol)
  })

  test('a refusal, with and without the reason in words, and an acknowledgement', () => {
    expect(decodeError(only(captured.ERROR_TEXT))).toEqual({ errno: 101, text: 'Nexthop has invalid gateway' })
    expect(decodeError(only(captured.ERROR_EXISTS))).toEqual({ errno: 17, text: undefined })
    expect(decodeError(only(captured.ACKNOWLEDGED))).toEqual({ errno: 0, text: undefined })
  })

  test('clsact and its filters', () => {
    expect(decodeQdisc(only(captured.QDISC_CLSACT).payload)).toEqual({ ifindex: 2, kind: 'clsact' })
    expect(decodeFilter(only(captured.FILTER_HEAD).payload)).toMatchObject({ handle: 0, programId: undefined })
    expect(decodeFilter(only(captured.FILTER_BPF).payload)).toMatchObject({ ifindex: 2, parent: CLSACT_PARENT.ingress, handle: 1, priority: 1, kind: 'bpf' })
    expect(decodeFilter(only(captured.FILTER_BPF).payload)?.programId).toBeGreaterThan(0)
  })
})
