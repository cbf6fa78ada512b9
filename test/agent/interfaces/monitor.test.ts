// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { InterfaceMonitor } from '#agent/interfaces/monitor.ts'
import { FakeNetlink, type FakeLink } from '../../support/fakes/fake-netlink.ts'
import * as captured from './netlink/captured.ts'

const ETH0: FakeLink = { index: 2, name: 'eth0', addresses: [{ addr: '192.0.2.1', bits: 24 }] }
const VETH: FakeLink = { index: 3, name: 'npl0123456789a', kind: 'veth' }

function monitored(...links: FakeLink[]) {
  const kernel = new FakeNetlink()
  for (const link of links) kernel.set(link, { quiet: true })
  const heard: string[] = []
  const monitor = new InterfaceMonitor({ socket: kernel, log: silentLog })
  monitor.start({
    interfacesChanged: (names) => heard.push([...names].sort().join(' ')),
    routesChanged: () => heard.push('routes'),
    hooksOrSysctlsChanged: () => heard.push('hooks or sysctls'),
    overrun: () => heard.push('overrun'),
  })
  return { kernel, monitor, heard, names: () => monitor.interfaces.all().map((one) => one.name) }
}

describe('the table', () => {
  test('is complete once it has started', () => {
    const { monitor, heard } = monitored(ETH0, VETH)
    expect(heard).toEqual(['eth0 npl0123456789a'])
    const eth0 = monitor.interfaces.byName('eth0')
    expect(eth0).toMatchObject({ index: 2, mtu: 1500, mac: '02:00:00:00:00:02', up: true, kind: undefined })
    expect(eth0?.addresses.map((one) => formatAddr(one.addr))).toEqual(['192.0.2.1'])
  })

  test('follows what comes, changes and goes, one call a batch', () => {
    const { kernel, heard, names, monitor } = monitored(ETH0)
    kernel.set(VETH)
    kernel.set({ ...ETH0, addresses: [], mtu: 9000 })
    kernel.remove(3)
    expect(heard.slice(1)).toEqual(['npl0123456789a', 'eth0', 'npl0123456789a'])
    expect(names()).toEqual(['eth0'])
    expect(monitor.interfaces.byName('eth0')).toMatchObject({ mtu: 9000, addresses: [] })
  })

  test('tells those who wait for an interface once it is in the table, and nothing when none differs', () => {
    const { kernel, monitor, names } = monitored(ETH0)
    const told: unknown[] = []
    monitor.changed.subscribe(() => told.push(names()))
    kernel.set(VETH)
    kernel.set(VETH)
    expect(told).toEqual([['eth0', VETH.name]])
  })

  test('knows an interface that came again under the same name by its new index', () => {
    const { kernel, monitor } = monitored(VETH)
    kernel.set({ ...VETH, index: 7 }, {})
    kernel.remove(3)
    expect(monitor.interfaces.byName(VETH.name)?.index).toBe(7)
  })

  test('reports both names of an interface that is renamed', () => {
    const { kernel, heard, names } = monitored(ETH0)
    kernel.set({ ...ETH0, name: 'wan' })
    expect(heard[1]).toBe('eth0 wan')
    expect(names()).toEqual(['wan'])
  })

  test('is quiet about events that change nothing', () => {
    const { kernel, heard } = monitored(ETH0)
    kernel.set(ETH0)
    expect(heard).toHaveLength(1)
  })

  test('keeps a port that only leaves its bridge', () => {
    const { kernel, names } = monitored(VETH)
    kernel.event(captured.BRIDGE_PORT_REMOVED)
    expect(names()).toEqual([VETH.name])
  })
})

describe('when events are lost', () => {
  test('everything is read again and what is gone is found', () => {
    const { kernel, heard, names } = monitored(ETH0, VETH)
    kernel.remove(3, { quiet: true })
    kernel.set({ index: 5, name: 'eth1' }, { quiet: true })
    kernel.overrun()
    expect(names()).toEqual(['eth0', 'eth1'])
    expect(heard.slice(1)).toEqual(['eth1 npl0123456789a', 'overrun'])
  })

  test('what was still waiting to be heard of does not bring back what is gone', () => {
    const { kernel, monitor, names } = monitored(ETH0)
    kernel.hold()
    kernel.set({ ...ETH0, addresses: [{ addr: '192.0.2.9', bits: 24 }] })
    kernel.set(VETH)
    kernel.set({ ...ETH0, addresses: [] }, { quiet: true })
    kernel.remove(3, { quiet: true })
    kernel.overrun({ first: true })
    kernel.release()
    expect(names()).toEqual(['eth0'])
    expect(monitor.interfaces.byName('eth0')?.addresses).toEqual([])
  })

  test('an address that went meanwhile is found', () => {
    const { kernel, monitor } = monitored(ETH0)
    kernel.set({ ...ETH0, addresses: [] }, { quiet: true })
    kernel.overrun()
    expect(monitor.interfaces.byName('eth0')?.addresses).toEqual([])
  })

  test('a list the kernel calls inconsistent is asked for again', () => {
    const { kernel, names } = monitored(ETH0, VETH)
    kernel.remove(3, { quiet: true })
    kernel.interruptedDumps = 1
    kernel.overrun()
    expect(names()).toEqual(['eth0'])
    const lists = [18, 22, 26, 26]
    expect(kernel.sent).toEqual([...lists, ...lists, ...lists])
  })
})

test('a resync reads everything again, and listeners hear of it', () => {
  const { kernel, monitor, heard, names } = monitored(ETH0, VETH)
  kernel.remove(3, { quiet: true })
  monitor.resync()
  expect(names()).toEqual(['eth0'])
  expect(heard.slice(1)).toEqual([VETH.name, 'overrun'])
})

test('listeners hear of the removal of our own routes, and of every change to default routes', () => {
  const { kernel, heard } = monitored(ETH0)
  const removed = (datagram: Buffer): Buffer => {
    const bytes = Buffer.from(datagram)
    bytes.writeUInt16LE(25, 4)
    return bytes
  }
  const after = (datagram: Buffer): string[] => {
    heard.length = 0
    kernel.event(datagram)
    return heard.map(String)
  }
  expect(after(captured.ROUTE_OURS)).toEqual([])
  expect(after(removed(captured.ROUTE_OURS))).toEqual(['routes'])
  expect(after(captured.ROUTE_DEFAULT)).toEqual(['routes'])
  expect(after(removed(captured.ROUTE_DEFAULT))).toEqual(['routes'])
})
