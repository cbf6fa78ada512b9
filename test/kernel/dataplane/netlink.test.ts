// SPDX-License-Identifier: Apache-2.0
/** The interface monitor and our routes against the kernel itself. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfProgram, ifindexOf, NetlinkSocket, tcAttach, tcCreateHook, tcDestroyHook, tcDetach } from '#native'
import { formatAddr, formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { selfAddresses } from '#agent/dataplane/host/devices.ts'
import { listOwnRoutes, removeRoute, Routes } from '#agent/dataplane/host/routes.ts'
import { InterfaceMonitor, MONITOR_GROUPS } from '#agent/interfaces/monitor.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import { PASS, SCHED_CLS } from './attach-cases.ts'

const IFACE = 'npnl0'
const stack: Disposable[] = []

function ip(...words: readonly string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'pipe', 'pipe'] })
}

beforeEach(() => {
  ip('link', 'add', IFACE, 'type', 'veth', 'peer', 'name', 'npnl1')
})

afterEach(() => {
  for (const one of stack.splice(0)) one[Symbol.dispose]()
  try {
    ip('link', 'del', IFACE)
  } catch {
    // the test has done it
  }
})

interface Monitored {
  readonly monitor: InterfaceMonitor
  readonly heard: string[]
  /** until it is as the condition says */
  readonly until: (condition: (iface: Interface | undefined) => boolean) => Promise<Interface | undefined>
}

function monitored(receiveBufferBytes?: number): Monitored {
  const heard: string[] = []
  const socket = NetlinkSocket.open({
    protocol: NETLINK_ROUTE,
    groups: MONITOR_GROUPS,
    ...(receiveBufferBytes === undefined ? {} : { receiveBufferBytes }),
  })
  const events = {
    interfacesChanged: (names: ReadonlySet<string>) => heard.push(...names),
    routesChanged: () => heard.push('a route'),
    hooksOrSysctlsChanged: () => heard.push('a hook or sysctl'),
    overrun: () => heard.push('overrun'),
  }
  const monitor = new InterfaceMonitor({ socket, log: silentLog })
  stack.push(monitor)
  monitor.start(events)
  const until = async (condition: (iface: Interface | undefined) => boolean): Promise<Interface | undefined> => {
    await expect.poll(() => condition(monitor.interfaces.byName(IFACE)), { interval: 2 }).toBe(true)
    return monitor.interfaces.byName(IFACE)
  }
  return { monitor, heard, until }
}

describe('the monitor', () => {
  test('knows at once what there is', () => {
    const { monitor } = monitored()
    expect(monitor.interfaces.byName('lo')).toMatchObject({ index: 1, loopback: true })
    expect(monitor.interfaces.byName(IFACE)).toMatchObject({ kind: 'veth', up: false, mtu: 1500 })
  })

  test('follows an interface through its life', async () => {
    const { until, heard } = monitored()
    ip('link', 'set', IFACE, 'up', 'mtu', '1400', 'address', '02:00:00:00:00:77')
    await until((iface) => iface?.up === true && iface.mtu === 1400 && iface.mac === '02:00:00:00:00:77')
    ip('addr', 'add', '192.0.2.7/24', 'dev', IFACE)
    ip('addr', 'add', 'fd00:77::1/64', 'dev', IFACE, 'nodad')
    const iface = await until((now) => now?.addresses.some((one) => formatAddr(one.addr) === 'fd00:77::1') === true)
    expect(iface?.addresses.filter((one) => one.scope === 0).map((one) => `${formatAddr(one.addr)}/${one.bits}`)).toEqual([
      '192.0.2.7/24',
      'fd00:77::1/64',
    ])
    ip('addr', 'flush', 'dev', IFACE)
    await until((now) => now?.addresses.length === 0)
    ip('link', 'del', IFACE)
    await until((now) => now === undefined)
    expect(heard).toContain(IFACE)
  })

  test('knows what the kernel takes for the node itself: on devices that are down, of links, by routes', async () => {
    // other tests have left theirs in this namespace
    const others = new Set(selfAddresses(monitored().monitor.interfaces))
    ip('addr', 'add', '192.0.2.7/24', 'dev', IFACE)
    const { monitor } = monitored()
    const local = (): string[] => monitor.interfaces.local().map(formatCidr)
    const own = (): string[] =>
      selfAddresses(monitor.interfaces)
        .filter((addr) => !others.has(addr))
        .map(formatAddr)
    expect(local()).toContain('192.0.2.7/32')
    ip('addr', 'add', '169.254.20.10/32', 'dev', IFACE)
    ip('addr', 'add', 'fd00:77::1/64', 'dev', IFACE, 'nodad')
    ip('route', 'add', 'local', '198.18.0.0/25', 'dev', 'lo')
    ip('route', 'add', 'local', '198.18.0.200', 'dev', IFACE)
    await expect.poll(local).toContain('198.18.0.200/32')
    expect([local().includes('198.18.0.0/25'), own()]).toEqual([true, ['169.254.20.10', '192.0.2.7', '198.18.0.200', 'fd00:77::1']])
    ip('link', 'set', IFACE, 'up')
    await expect.poll(() => monitor.interfaces.byName(IFACE)?.up).toBe(true)
    expect(own()).toContain('192.0.2.7')
    ip('route', 'del', 'local', '198.18.0.0/25', 'dev', 'lo')
    await expect.poll(local).not.toContain('198.18.0.0/25')
    ip('link', 'del', IFACE)
    await expect.poll(own).toEqual([])
  })

  test('hears of what others take from hooks, and of settings that they make, of these devices and of all', async () => {
    const { heard } = monitored()
    const told = async (what: string, run: () => unknown): Promise<void> => {
      const before = heard.length
      run()
      await expect.poll(() => heard.slice(before), { message: what }).toContain('a hook or sysctl')
    }
    const ifindex = ifindexOf(IFACE)
    const pass = BpfProgram.load({ type: SCHED_CLS, instructions: PASS, license: 'GPL' })
    stack.push({
      [Symbol.dispose]: () => {
        pass.close()
      },
    })
    const filter = { ifindex, direction: 'egress', handle: 1, priority: 1 } as const
    tcCreateHook(ifindex)
    tcAttach(filter, pass)
    tcAttach({ ...filter, direction: 'ingress' }, pass)
    await told('a filter', () => {
      tcDetach(filter)
    })
    await told('all filters', () => execFileSync('tc', ['filter', 'del', 'dev', IFACE, 'ingress']))
    await told('a clsact', () => {
      tcDestroyHook(ifindex)
    })
    for (const setting of [`ipv4/conf/${IFACE}/rp_filter`, `ipv4/conf/${IFACE}/forwarding`, `ipv6/conf/${IFACE}/forwarding`]) {
      const file = `/proc/sys/net/${setting}`
      const before = readFileSync(file, 'utf8').trim()
      await told(setting, () => {
        writeFileSync(file, before === '1' ? '0' : '1')
      })
    }
  })

  test('after more events than its socket holds it is right all the same', async () => {
    const { monitor, heard, until } = monitored(64 << 10)
    ip('link', 'set', IFACE, 'up')
    const batch = Array.from({ length: 200 }, (_, at) => `addr add 198.51.100.${at + 1}/32 dev ${IFACE}\n`).join('')
    execFileSync('ip', ['-batch', '-'], { input: batch })
    execFileSync('ip', ['-batch', '-'], { input: batch.replaceAll('addr add', 'addr del').split('\n').slice(10).join('\n') })
    await until((iface) => iface?.addresses.filter((one) => one.scope === 0).length === 10)
    expect(heard).toContain('overrun')
    expect(monitor.interfaces.all().map((one) => one.name)).toContain('npnl1')
  })
})

describe('routes', () => {
  function exchange(): NetlinkExchange {
    const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
    stack.push({
      [Symbol.dispose]: () => {
        socket.close()
      },
    })
    return new NetlinkExchange(socket)
  }

  function apply(routes: Routes, wanted: readonly (readonly [string, string])[]): string[] {
    routes.setDesired(wanted.map(([cidr, via]) => ({ cidr: parseCidr(cidr), via: parseAddr(via), overlay: false })))
    routes.readBack()
    return [routes.writes, routes.removals].flatMap((part) => (part.pending() ? part.apply().failures.map((one) => one.reason) : []))
  }

  beforeEach(() => {
    for (const device of [IFACE, 'npnl1']) ip('link', 'set', device, 'up')
    ip('addr', 'add', '192.0.2.1/24', 'dev', IFACE)
    ip('addr', 'add', 'fd00:88::1/64', 'dev', IFACE, 'nodad')
  })

  test('of both families are added, changed and removed', () => {
    const netlink = exchange()
    const routes = new Routes({ netlink, log: silentLog })
    const text = (): string[] =>
      listOwnRoutes(netlink).map((one) => `${formatCidr(one.cidr)} ${one.via === undefined ? '' : formatAddr(one.via)}`)
    expect(
      apply(routes, [
        ['10.77.0.0/24', '192.0.2.2'],
        ['fd77::/64', 'fd00:88::2'],
      ]),
    ).toEqual([])
    expect(text()).toEqual(['10.77.0.0/24 192.0.2.2', 'fd77::/64 fd00:88::2'])
    expect(
      apply(routes, [
        ['10.77.0.0/24', '192.0.2.3'],
        ['fd77::/64', 'fd00:88::3'],
      ]),
    ).toEqual([])
    expect(text()).toEqual(['10.77.0.0/24 192.0.2.3', 'fd77::/64 fd00:88::3'])
    expect(apply(routes, [])).toEqual([])
    expect(text()).toEqual([])
  })

  test('of others stay, and the failure names the kernel’s reason', () => {
    const netlink = exchange()
    const routes = new Routes({ netlink, log: silentLog })
    ip('route', 'add', '10.78.0.0/24', 'via', '192.0.2.9')
    expect(
      apply(routes, [
        ['10.78.0.0/24', '192.0.2.2'],
        ['10.79.0.0/24', '203.0.113.1'],
      ]),
    ).toEqual([
      'netlink add route 10.78.0.0/24: a route to there exists that is not ours',
      expect.stringContaining('netlink add route 10.79.0.0/24: '),
    ])
    expect(execFileSync('ip', ['route', 'show', '10.78.0.0/24'], { encoding: 'utf8' })).toContain('192.0.2.9')
  })

  test('that are gone already count as removed, and the monitor reports the removal', async () => {
    const netlink = exchange()
    const { heard } = monitored()
    const routes = new Routes({ netlink, log: silentLog })
    expect(apply(routes, [['10.77.0.0/24', '192.0.2.2']])).toEqual([])
    const [route] = listOwnRoutes(netlink)
    if (route === undefined) throw new Error('no route')
    removeRoute(netlink, route)
    removeRoute(netlink, route)
    await expect.poll(() => heard).toContain('a route')
  })
})
