// SPDX-License-Identifier: Apache-2.0
/** Takes everything of ours off the node; needs nothing but what is in the kernel, and the file with the old sysctl
 * values. Layer: agent/dataplane. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { NetlinkSocket, tcDestroyHook } from '#native'
import { errorText } from '#lib/base/errors.ts'
import { formatCidr } from '#lib/base/ip.ts'
import { listInterfaces } from '#agent/interfaces/list-interfaces.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import {
  CLSACT_PARENT,
  decodeFilter,
  decodeQdisc,
  encodeFilterDump,
  encodeQdiscDump,
  RTM_GETQDISC,
  RTM_GETTFILTER,
} from '#agent/interfaces/netlink/tc.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { cgroup2Mount, CgroupAttachments, CgroupLinks, isCgroup2 } from './attach/cgroup.ts'
import { ClsactHooks } from './attach/clsact.ts'
import { parseHookKey, type Hooks, type Place } from './attach/hook.ts'
import { LinkPins } from './attach/link-pins.ts'
import type { Pins } from './pins.ts'
import { listOwnRoutes, removeRoute } from './host/routes.ts'
import { restoreSysctls } from './host/sysctls.ts'
import { removeTunnelDevice, TUNNEL_DEVICE } from './host/tunnel-device.ts'
import { TcxHooks } from './attach/tcx.ts'
import { XdpHooks } from './attach/xdp.ts'

export interface CleanupOptions {
  readonly pins: Pins
  /** where old values of sysctls are kept */
  readonly sysctlState: string
  /** cgroup2 directory; undefined: its mount */
  readonly cgroup: string | undefined
}

export interface CleanupReport {
  /** what was removed, one line each; empty when there was nothing */
  readonly removed: readonly string[]
  /** what is as it was before, one line each */
  readonly restored: readonly string[]
  /** what could not be */
  readonly failed: readonly string[]
}

/** Each step on its own: a failure leaves the others to be done. */
export function cleanup(options: CleanupOptions): CleanupReport {
  const report = new Report()
  // pins that others have put there may be others' links
  report.step('pins', () => {
    options.pins.disown()
  })
  if (report.failed.length > 0) return report
  const links = new LinkPins(options.pins.links)
  const netlink = new NetlinkExchange(NetlinkSocket.open({ protocol: NETLINK_ROUTE }))
  // with its program, without which it would let packets in
  report.step('tunnel-device', () => {
    if (listInterfaces().byName(TUNNEL_DEVICE)?.kind === 'vxlan' && removeTunnelDevice(netlink))
      report.removed.push(`device ${TUNNEL_DEVICE}`)
  })
  report.step('hooks', () => {
    const interfaces = listInterfaces()
    // programs off first: what they lead to must not go before them
    report.clear(new TcxHooks(links))
    removeFilters(report, interfaces, netlink)
    report.clear(new XdpHooks(interfaces))
  })
  report.step('cgroup', () => {
    clearCgroup(report, options, links)
  })
  const hooksGone = report.failed.length === 0
  report.step('routes', () => {
    for (const route of listOwnRoutes(netlink)) {
      removeRoute(netlink, route)
      report.removed.push(`route ${formatCidr(route.cidr)}`)
    }
  })
  // a program that is still at its hook must keep what it leads to
  if (hooksGone) {
    report.step('pins', () => {
      removePins(report, options.pins)
    })
  }
  report.step('sysctls', () => {
    const { restored, failed } = restoreSysctls({ stateFile: options.sysctlState })
    report.restored.push(...restored)
    report.failed.push(...failed)
  })
  return report
}

class Report implements CleanupReport {
  readonly removed: string[] = []
  readonly restored: string[] = []
  readonly failed: string[] = []

  step(name: string, run: () => void): void {
    try {
      run()
    } catch (thrown) {
      this.failed.push(`${name}: ${errorText(thrown)}`)
    }
  }

  clear<P extends Place>(hooks: Hooks<P>): string[] {
    const keys = hooks.list()
    for (const key of keys) {
      this.step(key, () => {
        hooks.clear(key)
        this.removed.push(`${hooks.kind} ${key}`)
      })
    }
    return keys
  }
}

/** The monitor's table, read once. */
/** Removes our filters, and the queueing discipline they were attached to when no other filters are left there. */
function removeFilters(report: Report, interfaces: Interfaces, netlink: NetlinkExchange): void {
  const cleared = new Set(report.clear(ClsactHooks.ofPackets(interfaces)).map((key) => parseHookKey(key)?.iface))
  for (const name of cleared) {
    const ifindex = name === undefined ? undefined : interfaces.byName(name)?.index
    if (ifindex === undefined || !isBareClsact(ifindex, netlink)) continue
    tcDestroyHook(ifindex)
    report.removed.push(`clsact ${name ?? ''}`)
  }
}

function isBareClsact(ifindex: number, netlink: NetlinkExchange): boolean {
  const qdiscs = netlink
    .dump({ what: 'list qdiscs', type: RTM_GETQDISC, payload: encodeQdiscDump() })
    .map((message) => decodeQdisc(message.payload))
  if (!qdiscs.some((one) => one?.ifindex === ifindex && one.kind === 'clsact')) return false
  return Object.values(CLSACT_PARENT).every((parent) => {
    const filters = netlink.dump({ what: 'list filters', type: RTM_GETTFILTER, payload: encodeFilterDump(ifindex, parent) })
    return filters.every((message) => decodeFilter(message.payload)?.handle === 0)
  })
}

function clearCgroup(report: Report, options: CleanupOptions, links: LinkPins): void {
  const cgroup = options.cgroup ?? cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8'))
  if (cgroup === undefined) return
  report.clear(new CgroupLinks(links, cgroup))
  // before 5.7 there are no links; before 5.9 those just dropped may still be listed for a moment, and detaching them
  // is refused or harmless. A node that has been cleaned, or never had an agent, has no such mount
  if (isCgroup2(cgroup)) report.clear(new CgroupAttachments(cgroup))
}

/** Whatever is left in our folder: programs, their tail-call arrays, maps. */
function removePins(report: Report, pins: Pins): void {
  if (!existsSync(pins.dir)) return
  for (const folder of [pins.links, pins.programs, pins.maps]) {
    if (!existsSync(folder)) continue
    for (const name of readdirSync(folder)) {
      rmSync(join(folder, name), { recursive: true })
      report.removed.push(`pin ${join(folder, name)}`)
    }
  }
  rmSync(pins.dir, { recursive: true })
}
