// SPDX-License-Identifier: Apache-2.0
/** Netlink in another network namespace. Layer: agent/cni. */
import { NetlinkSocket } from '#native'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'

/** `netns`: its file. Throws the addon's errors when it cannot be entered. */
export function inNetns<T>(netns: string, work: (exchange: NetlinkExchange) => T): T {
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE, netns })
  try {
    return work(new NetlinkExchange(socket))
  } finally {
    socket.close()
  }
}
