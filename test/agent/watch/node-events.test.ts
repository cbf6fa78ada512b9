// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import type { Node } from '#lib/model/node.ts'
import { silentLog } from '#lib/obs/log.ts'
import { leaveLostAddress, nodeMoves } from '#agent/watch/node-events.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'

describe('the address of the connection to the source', () => {
  const interfaces = (...addresses: string[]): Interfaces => {
    const all = [{ ...ETH0, addresses: addresses.map((addr) => ({ addr: parseAddr(addr), bits: 24, scope: 0 })) }]
    return { all: () => all, byName: (name) => all.find((one) => one.name === name), local: () => [] }
  }
  const ETH0 = { index: 2, name: 'eth0', mtu: 1500, mac: '', up: true, running: true, loopback: false, kind: undefined, master: 0 }

  function left(localAddress: string | undefined, there: Interfaces): string[] {
    const reasons: string[] = []
    const refresh = (reason: string): void => void reasons.push(reason)
    leaveLostAddress({ source: { refresh, localAddress }, log: silentLog }, there)
    return reasons
  }

  test.each([
    [undefined, '10.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['fd00::1', 'fd00::1'],
    ['127.0.0.7', '127.0.0.1'],
    ['fe80::1%eth0', 'fd00::1'],
  ])('%s is kept on a node with %s', (own, there) => {
    expect(left(own, interfaces(there))).toEqual([])
  })

  test('that is gone is left', () => {
    expect(left('10.0.0.1', interfaces('10.0.0.2'))).toEqual(['this node no longer has the address 10.0.0.1'])
  })
})

test('other nodes have moved where an address of theirs is another one', () => {
  const one = (name: string, ...addresses: string[]): Node => ({
    ...{ kind: 'Node', namespace: '', name, podCIDRs: [], zone: undefined, labels: new Map(), subnets: [] },
    addresses: addresses.map(parseAddr),
  })
  const change = (before: Node | undefined, after: Node | undefined) => ({ kind: 'Node', before, after }) as const
  const changes = [
    change(one('b', '192.0.2.2', 'fd00::2'), one('b', '192.0.2.9', 'fd00::2')),
    change(one('c', '192.0.2.3'), one('c', '192.0.2.3', 'fd00::3')),
    change(one('d', '192.0.2.4'), undefined),
    change(undefined, one('d', '192.0.2.5')),
    change(one('a', '192.0.2.1'), one('a', '192.0.2.8')),
  ]
  expect(nodeMoves(changes, 'a')).toEqual([[parseAddr('192.0.2.2'), parseAddr('192.0.2.9')]])
})
