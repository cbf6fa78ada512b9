// SPDX-License-Identifier: Apache-2.0
/** Where a service port is reached. Layer: agent/compile (pure). */
import { ANY_V4, ANY_V6, isV4 } from '#lib/base/ip.ts'
import type { Addr, Port } from '#lib/base/ip.ts'
import type { Family, Service, ServicePort } from '#lib/model/service.ts'

export interface FrontendAddress {
  /** restricted: a load balancer's address that is for the service's source ranges only */
  readonly kind: 'cluster' | 'node-port' | 'external' | 'restricted'
  readonly addr: Addr
  readonly port: Port
}

/** Addresses of one family. Of one that is listed twice the stricter kind comes first. */
export function frontendAddresses(service: Service, port: ServicePort, family: Family): readonly FrontendAddress[] {
  const v4 = family === 'IPv4'
  const ofFamily = (kind: FrontendAddress['kind'], addrs: readonly Addr[]): FrontendAddress[] =>
    addrs.filter((addr) => isV4(addr) === v4).map((addr) => ({ kind, addr, port: port.port }))
  const places = [
    ...ofFamily('cluster', service.clusterIPs),
    ...ofFamily(isRestricted(service, v4) ? 'restricted' : 'external', service.loadBalancerIPs),
    ...ofFamily('external', service.externalIPs),
  ]
  if (port.nodePort !== undefined) places.push({ kind: 'node-port', addr: v4 ? ANY_V4 : ANY_V6, port: port.nodePort })
  return places
}

/** The same without addresses and ranges of the other family, and without those that are not served. Each is there
 * once. */
export function inFamily(service: Service, family: Family, isServed: (addr: Addr) => boolean): Service {
  const isOurs = (addr: Addr): boolean => isV4(addr) === (family === 'IPv4')
  const ours = (addrs: readonly Addr[]): readonly Addr[] => [...new Set(addrs)].filter((addr) => isOurs(addr) && isServed(addr))
  const { clusterIPs, externalIPs, loadBalancerIPs, loadBalancerSourceRanges: ranges } = service
  return {
    ...service,
    clusterIPs: ours(clusterIPs),
    externalIPs: ours(externalIPs),
    loadBalancerIPs: ours(loadBalancerIPs),
    loadBalancerSourceRanges: isRestricted(service, family === 'IPv4') ? ranges?.filter(({ addr }) => isOurs(addr)) : undefined,
  }
}

/** Ranges of the other family alone say nothing of this one, as in upstream's proxy. */
function isRestricted({ loadBalancerSourceRanges: ranges }: Service, v4: boolean): boolean {
  return ranges !== undefined && (ranges.length === 0 || ranges.some(({ addr }) => isV4(addr) === v4))
}
