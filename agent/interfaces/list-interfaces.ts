// SPDX-License-Identifier: Apache-2.0
/** The interfaces of this network namespace as they are now. Layer: agent/interfaces. */
import { NetlinkSocket } from '#native'
import { silentLog } from '#lib/obs/log.ts'
import { InterfaceMonitor } from './monitor.ts'
import { NETLINK_ROUTE } from './netlink/exchange.ts'
import type { Interfaces } from './table.ts'

/** Throws NetlinkError. */
export function listInterfaces(): Interfaces {
  const monitor = new InterfaceMonitor({ socket: NetlinkSocket.open({ protocol: NETLINK_ROUTE }), log: silentLog })
  monitor.start()
  monitor[Symbol.dispose]()
  return monitor.interfaces
}
