// SPDX-License-Identifier: Apache-2.0
/** Rules and tunnel devices of an older version go from a real kernel, and those of others stay. Layer: test. */
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { NetlinkSocket } from '#native'
import { listOwnRoutes, removeRoute } from '#agent/dataplane/host/routes.ts'
import { findOldRules, Leftovers, LEFTOVERS } from '#agent/dataplane/leftovers/leftovers.ts'
import { listInterfaces } from '#agent/interfaces/list-interfaces.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { systemClock } from '#lib/base/clock.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { mustRun } from '../../../lab/processes/command.ts'
import { oldRules } from '../../support/old-rules.ts'

const OTHERS = `*filter
:FORWARD DROP [0:0]
:MINE - [0:0]
-A FORWARD -i npl+ -j MINE
-A MINE -m comment --comment "npl: mine" -j ACCEPT
COMMIT
`
const OLD = oldRules({ ifaces: ['npl0123456789a', 'npl0123456789b'], deniedPort: 8080, pods: '10.245.0.0/16' })

async function rulesOf(tool: string): Promise<string> {
  return (await mustRun([`${tool}-save`])).replaceAll(/^#.*\n|\[\d+:\d+\]/gm, '')
}

/** One look of an agent that serves. */
async function look(): Promise<{ readonly removed: readonly string[]; readonly devicesGone: number }> {
  const netlink = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  const removed: string[] = []
  let devicesGone = 0
  const health = new Health(() => systemClock.wall())
  health.expect(LEFTOVERS, 'none')
  const leftovers = new Leftovers({
    ...{ clock: systemClock, health, serves: () => true, netlink: new NetlinkExchange(netlink), interfaces: listInterfaces() },
    log: { ...silentLog, info: (fields) => void removed.push(...(fields as { readonly removed: readonly string[] }).removed) },
    onDeviceGone: () => devicesGone++,
  })
  await leftovers.tick()
  netlink.close()
  expect(health.report().conditions.filter(({ ok }) => !ok)).toEqual([])
  return { removed, devicesGone }
}

const CLEAR = `nft flush ruleset
for t in filter nat raw; do iptables-legacy -t $t -F; iptables-legacy -t $t -X; done
iptables-legacy -P FORWARD ACCEPT`

async function clear(): Promise<void> {
  await mustRun(['sh', '-c', CLEAR])
}

beforeEach(clear)
// other files are tested in the same namespace
afterAll(clear)

describe.each(['iptables-nft', 'iptables-legacy'])('%s', (tool) => {
  test('chains and rules of every table go at once, those of others stay byte for byte', async () => {
    await mustRun([`${tool}-restore`, '--noflush'], { input: OTHERS })
    const before = await rulesOf(tool)
    await mustRun([`${tool}-restore`, '--noflush'], { input: OLD })
    expect(await findOldRules()).toEqual([
      expect.stringMatching(new RegExp(`^${tool}: (?=.*raw 2 chains, 1 jumps)(?=.*nat 2 chains, 1 jumps)(?=.*filter 10 chains, 5 jumps)`)),
    ])
    await look()
    expect((await rulesOf(tool)).replace(/\*(raw|nat)\n(:.*\n)*COMMIT\n/g, '')).toBe(before.replace(/\*(raw|nat)\n(:.*\n)*COMMIT\n/g, ''))
    expect(await findOldRules()).toEqual([])
  })
})

test('tables of nftables by their name', async () => {
  await mustRun(['nft', '-f', '-'], {
    input: 'table ip netplane { chain npl-FORWARD { }; }\ntable ip6 netplane {}\ntable ip netplane-mine {}\n',
  })
  expect((await look()).removed).toEqual(['nft: table ip netplane', 'nft: table ip6 netplane'])
  expect(await mustRun(['nft', 'list', 'tables'])).toContain('table ip netplane-mine')
  expect((await look()).removed).toEqual([])
})

test('a tunnel device goes with its routes', async () => {
  const lines = [
    'link add vxlan.netplane type vxlan id 4096 dstport 4789',
    'link set vxlan.netplane up',
    'addr add 10.245.1.0/32 dev vxlan.netplane',
    'route add 10.245.2.0/26 via 10.245.2.0 dev vxlan.netplane onlink proto 80',
  ]
  await mustRun(['ip', '-batch', '-'], { input: lines.join('\n') })
  expect(await look()).toEqual({ removed: ['device vxlan.netplane'], devicesGone: 1 })
  expect(await mustRun(['ip', 'route', 'show', 'proto', '80'])).toBe('')
  expect(await look()).toEqual({ removed: [], devicesGone: 0 })
})

test('a device of another kind that is called so stays', async () => {
  await mustRun(['ip', 'link', 'add', 'vxlan.netplane', 'type', 'bridge'])
  expect(await look()).toEqual({ removed: [], devicesGone: 0 })
  expect(listInterfaces().byName('vxlan.netplane')?.kind).toBe('bridge')
})

test('routes of theirs that drop what is for their own blocks go as well: they have our protocol number', async () => {
  await mustRun(['sh', '-c', 'ip route add blackhole 10.245.1.0/26 proto 80; ip -6 route add blackhole fd00:245:1::/122 proto 80'])
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  const netlink = new NetlinkExchange(socket)
  const found = listOwnRoutes(netlink)
  for (const route of found) removeRoute(netlink, route)
  expect(found).toHaveLength(2)
  expect(listOwnRoutes(netlink)).toEqual([])
  socket.close()
})
