// SPDX-License-Identifier: Apache-2.0
/** Veths as the plugin makes them: what is not done at once is waited for by events alone. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NetlinkSocket } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { Notifier, waitUntil } from '#lib/base/async/wait.ts'
import { silentLog } from '#lib/obs/log.ts'
import { KernelVeths } from '#agent/cni/networking/kernel-veths.ts'
import { watchNetns } from '#agent/cni/networking/netns.ts'
import { InterfaceMonitor, MONITOR_GROUPS } from '#agent/interfaces/monitor.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'

const ROUNDS = 30
/** on a fast machine the kernel is seldom late */
const MOST_ROUNDS = 2000
const SOON_MS = 2000

let folder = ''
let netns = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-veths-'))
  netns = join(folder, 'netns')
  writeFileSync(netns, '')
  sh(`unshare --net=${netns} true`)
})

afterAll(() => {
  sh(`umount ${netns}`)
  rmSync(folder, { recursive: true })
})

function sh(script: string): void {
  execFileSync('sh', ['-ec', script])
}

test('a route in a namespace is heard of', async () => {
  const changed = new Notifier()
  let heard = 0
  changed.subscribe(() => heard++)
  const watch = watchNetns(netns, [11], changed)
  sh(`nsenter --net=${netns} sh -ec 'ip link set lo up; ip addr add fd00:9::9/128 dev lo nodad'`)
  await expect.poll(() => heard).toBeGreaterThan(0)
  watch[Symbol.dispose]()
  const before = heard
  sh(`nsenter --net=${netns} ip addr del fd00:9::9/128 dev lo`)
  await systemClock.sleep(50, new AbortController().signal)
  expect(heard).toBe(before)
})

test('a veth that is raised has carrier and addresses soon, though no time wakes its waiter', async () => {
  const netlink = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE, groups: MONITOR_GROUPS })
  using monitor = new InterfaceMonitor({ socket, log: silentLog })
  monitor.start()
  const veths = new KernelVeths({ netlink: new NetlinkExchange(netlink), interfaces: monitor.changed })
  const veth = {
    containerId: 'a-1',
    host: 'npltest',
    netns,
    ifname: 'eth0',
    mtu: 1450,
    addresses: ['10.1.1.1', 'fd00:1::1'].map(parseAddr),
  }
  let woken = 0
  try {
    for (let round = 0; round < ROUNDS || (woken === 0 && round < MOST_ROUNDS); round++) {
      let looks = 0
      await withinBestOfThree(SOON_MS, async () => {
        veths.create(veth)
        looks = 0
        const start = systemClock.now()
        {
          using raised = veths.raise(veth)
          const missing = (): string | undefined => {
            looks++
            return raised.missing()
          }
          await waitUntil({ missing, wokenBy: raised.changed, clock: systemClock, deadline: start + HANG_MS })
        }
        const took = systemClock.now() - start
        // at the deadline it looks once more
        expect(took).toBeLessThan(HANG_MS)
        return took
      })
      if (looks > 1) woken++
      expect(veths.whatDiffers(veth)).toBeUndefined()
      veths.remove({ ...veth, containerId: 'a-2' })
      expect(veths.whatDiffers(veth)).toBeUndefined()
      veths.remove(veth)
      expect(veths.whatDiffers(veth)).toBe('npltest is gone')
    }
  } finally {
    netlink.close()
  }
  // the address of IPv6, for carrier is there at once on newer kernels
  expect(woken).toBeGreaterThan(0)
})
