// SPDX-License-Identifier: Apache-2.0
/** What one would otherwise run: the same services by the kernel's NAT, as iptables rules and as nftables maps. Layer: bench (pure).
 *
 * Fewer rules than kube-proxy writes for the same services, and no more than they need: what is compared is the way packets take. */
import { PORT, far, near } from './manifests.ts'

const PROTOCOLS = ['tcp', 'udp'] as const
/** kube-proxy's own choice */
const MASQUERADE_MARK = '0x4000'

/** For `iptables-restore`, on the entry node. A node port whose backend is elsewhere needs its answers back here: masquerade. */
export function iptablesRules(): string {
  const rules = PROTOCOLS.flatMap((protocol) => {
    const clusterIps = [near, far].map(
      (service) =>
        `-A PREROUTING -d ${service.clusterIp}/32 -p ${protocol} -m ${protocol} --dport ${PORT} -j DNAT --to-destination ${service.backend}:${PORT}`,
    )
    const local = `-p ${protocol} -m addrtype --dst-type LOCAL -m ${protocol} --dport`
    return [
      ...clusterIps,
      `-A PREROUTING ${local} ${near.nodePort} -j DNAT --to-destination ${near.backend}:${PORT}`,
      `-A PREROUTING ${local} ${far.nodePort} -j MARK --set-xmark ${MASQUERADE_MARK}/${MASQUERADE_MARK}`,
      `-A PREROUTING ${local} ${far.nodePort} -j DNAT --to-destination ${far.backend}:${PORT}`,
    ]
  })
  return ['*nat', ...rules, `-A POSTROUTING -m mark --mark ${MASQUERADE_MARK}/${MASQUERADE_MARK} -j MASQUERADE`, 'COMMIT', ''].join('\n')
}

/** For `nft -f -`, on the entry node. */
export function nftablesRules(): string {
  const elements = (of: (service: typeof near, protocol: string) => string): string =>
    PROTOCOLS.flatMap((protocol) => [near, far].map((service) => of(service, protocol))).join(', ')
  return `table ip services {
  map cluster_ips { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
    elements = { ${elements((service, protocol) => `${service.clusterIp} . ${protocol} . ${PORT} : ${service.backend} . ${PORT}`)} } }
  map node_ports { type inet_proto . inet_service : ipv4_addr . inet_service
    elements = { ${elements((service, protocol) => `${protocol} . ${service.nodePort} : ${service.backend} . ${PORT}`)} } }
  set elsewhere { type inet_service; elements = { ${far.nodePort} } }
  chain prerouting { type nat hook prerouting priority dstnat;
    dnat ip to ip daddr . meta l4proto . th dport map @cluster_ips
    fib daddr type local meta l4proto { tcp, udp } th dport @elsewhere meta mark set meta mark or ${MASQUERADE_MARK}
    fib daddr type local dnat ip to meta l4proto . th dport map @node_ports
  }
  chain postrouting { type nat hook postrouting priority srcnat;
    meta mark and ${MASQUERADE_MARK} == ${MASQUERADE_MARK} masquerade
  }
}
`
}
