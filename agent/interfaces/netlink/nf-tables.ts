// SPDX-License-Identifier: Apache-2.0
/** Whether the kernel has nf_tables, and netfilter's tools where it has not. Layer: agent/interfaces. */
import { constants } from 'node:os'
import { NetlinkSocket } from '#native'
import { errorCode, NetlinkError } from '#lib/base/errors.ts'
import { toolRunner, type RunTool } from '#lib/base/os/run-tool.ts'
import { NetlinkExchange } from './exchange.ts'

const NETLINK_NETFILTER = 12
const SUBSYSTEM = 10
const GET_GENERATION = 16
/** struct nfgenmsg: any family */
const HEADER = new Uint8Array(4)
const { EINVAL } = constants.errno
/** They ask nf_tables, also about rules of iptables. */
const NEEDS_NF_TABLES = /^(?:nft$|(?:ip|ip6|arp|eb)tables-nft)/

/** Asks the kernel, which loads its module when it has one. */
export function hasNfTables(open = NetlinkSocket.open.bind(NetlinkSocket)): boolean {
  let socket: NetlinkSocket | undefined
  try {
    socket = open({ protocol: NETLINK_NETFILTER })
    new NetlinkExchange(socket).request({ what: 'ask for nf_tables', type: (SUBSYSTEM << 8) | GET_GENERATION, payload: HEADER })
    return true
  } catch (thrown) {
    // no netlink for netfilter; or none of its parts has this number
    if (errorCode(thrown) === 'EPROTONOSUPPORT' || (thrown instanceof NetlinkError && thrown.errno === EINVAL)) return false
    throw thrown
  } finally {
    socket?.close()
  }
}

/** Where the kernel has no nf_tables, a tool that fails for want of it is as good as not installed: there are no
 * rules for it to show. */
export function netfilterTools(options: { readonly timeoutMs: number }, asked = hasNfTables): RunTool {
  const run = toolRunner(options)
  return async (command, input) => {
    try {
      return await run(command, input)
    } catch (thrown) {
      if (NEEDS_NF_TABLES.test(command[0] ?? '') && !asked()) return undefined
      throw thrown
    }
  }
}
