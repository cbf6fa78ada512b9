// SPDX-License-Identifier: Apache-2.0
/** Netlink in another network namespace. Layer: agent/cni. */
import { NetlinkSocket } from '#native'
import type { Notifier } from '#lib/base/async/wait.ts'
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

/** Notifies of each event of these groups there, until the result is disposed of. Throws as {@link inNetns}. */
export function watchNetns(netns: string, groups: readonly number[], changed: Notifier): Disposable {
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE, netns, groups })
  const events = new NetlinkExchange(socket)
  socket.onReadable(() => {
    events.discard()
    changed.notify()
  })
  return {
    [Symbol.dispose]: () => {
      socket.onReadable(undefined)
      socket.close()
    },
  }
}
