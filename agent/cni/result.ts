// SPDX-License-Identifier: Apache-2.0
/** The answer to ADD, in the words of each version of the specification. Layer: agent/cni (pure). */
import { addrBits, formatAddr, isV4 } from '#lib/base/ip.ts'
import { POD_GATEWAYS } from '#agent/interfaces/pod-gateways.ts'
import { familiesOf, macOf, type PodVeth } from './networking/pod-veth.ts'
import type { CniVersion } from './request.ts'

export function addResult(link: PodVeth, cniVersion: CniVersion): string {
  const isOld = cniVersion.startsWith('0.')
  const ips = link.addresses.map((addr) => ({
    ...(isOld ? { version: isV4(addr) ? '4' : '6' } : {}),
    address: `${formatAddr(addr)}/${addrBits(addr)}`,
    gateway: formatAddr(isV4(addr) ? POD_GATEWAYS.v4 : POD_GATEWAYS.v6),
    interface: 1,
  }))
  const routes = familiesOf(link).map((family) => ({ dst: family === 'v4' ? '0.0.0.0/0' : '::/0', gw: formatAddr(POD_GATEWAYS[family]) }))
  const interfaces = [
    { name: link.host, mac: macOf(link, 'node') },
    { name: link.ifname, mac: macOf(link, 'pod'), sandbox: link.netns },
  ]
  return JSON.stringify({ cniVersion, interfaces, ips, routes, dns: {} })
}
