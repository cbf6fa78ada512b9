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
      peer: 2,
    })
  })

  test('a device without a link-layer address that is down', () => {
    expect(decodeLink(only(captured.TUN_LINK).payload)).toMatchObject({
      name: 'tt',
      up: false,
      running: false,
      mac: undefined,
      kind: 'tun',
    })
  })

  test('a port that leaves its bridge is no interface that goes', () => {
    const message = only(captured.BRIDGE_PORT_REMOVED)
    expect(message.type).toBe(17)
    expect(decodeLink(message.payload)).toBeUndefined()
  })

  test.each([
    ['IPv4', captured.ADDR_V4, { addr: '10.1.2.3', bits: 24, scope: 0 }],
    ['IPv4 with a peer: our own end counts', captured.ADDR_V4_PEER, { addr: '10.9.0.1', bits: 32, scope: 0 }],
    ['IPv6', captured.ADDR_V6, { addr: 'fd00::5', bits: 64, scope: 0 }],
    ['IPv6 link-local', captured.ADDR_V6_LINK, { addr: 'fe80::d0ed:cff:fe04:9db3', bits: 64, scope: 253 }],
  ])('an address: %s', (_, datagram, expected) => {
    const decoded = decodeAddr(only(datagram).payload)
    expect(decoded && { ...decoded, addr: formatAddr(decoded.addr) }).toMatchObject({ ...expected, duplicate: false })
  })

  test.each([
    ['the default route', captured.ROUTE_DEFAULT, { cidr: '0.0.0.0/0', via: '10.1.2.1', protocol: 3 }],
    ['one of ours', captured.ROUTE_OURS, { cidr: '10.7.0.0/16', via: '10.1.2.9', protocol: 80 }],
    ['one with several next hops', captured.ROUTE_MULTIPATH, { cidr: '10.8.0.0/16', via: undefined, protocol: 80 }],
    ['IPv6', captured.ROUTE_V6, { cidr: 'fd07::/48', via: 'fd00::9', protocol: 80 }],
  ])('a route: %s', (_, datagram, expected) => {
    const { payload } = only(datagram)
    const route = decodeRoute(payload)
    expect(
      route && { cidr: formatCidr(route.cidr), via: route.via && formatAddr(route.via), protocol: route.protocol, table: route.table },
    ).toEqual({ ...expected, table: 254 })
    expect(routeProtocol(payload)).toBe(expected.protocol)
  })

  test('a refusal, with and without the reason in words, and an acknowledgement', () => {
    expect(decodeError(only(captured.ERROR_TEXT))).toEqual({ errno: 101, text: 'Nexthop has invalid gateway' })
    expect(decodeError(only(captured.ERROR_EXISTS))).toEqual({ errno: 17, text: undefined })
    expect(decodeError(only(captured.ACKNOWLEDGED))).toEqual({ errno: 0, text: undefined })
  })

  test('clsact and its filters', () => {
    expect(decodeQdisc(only(captured.QDISC_CLSACT).payload)).toEqual({ ifindex: 2, kind: 'clsact' })
    expect(decodeFilter(only(captured.FILTER_HEAD).payload)).toMatchObject({ handle: 0, programId: undefined })
    expect(decodeFilter(only(captured.FILTER_BPF).payload)).toMatchObject({
      ifindex: 2,
      parent: CLSACT_PARENT.ingress,
      handle: 1,
      priority: 1,
      kind: 'bpf',
    })
    expect(decodeFilter(only(captured.FILTER_BPF).payload)?.programId).toBeGreaterThan(0)
  })
})
