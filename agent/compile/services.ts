// SPDX-License-Identifier: Apache-2.0
/** A service and its slices → the rows by which packets to it find an endpoint. Layer: agent/compile (pure). */
import { ANY_V4, ANY_V6, isV4 } from '#lib/base/ip.ts'
import type { Addr, Port } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Family, Service, ServicePort } from '#lib/model/service.ts'
import type { BackendRow, FrontendRow, Row, ServiceId } from './desired.ts'
import { FRONTEND_EXTERNAL, FRONTEND_NODE_PORT } from '#lib/base/flags.ts'
import { serviceId } from './ids.ts'
import { claimKey, compareBackends, compareFrontends } from './rows.ts'

export interface ServiceContext {
  /** the address of that family of another node; undefined for this node and for strangers */
  readonly otherNode: (name: string, v4: boolean) => Addr | undefined
}

/** Rows of all ports, frontends first, each table sorted by key; none for a service that is not ours to serve. A frontend without a usable
 * endpoint has count 0: connections to it are refused at once. */
export function compileService(service: Service, slices: readonly EndpointSlice[], context: ServiceContext): readonly Row[] {
  if (service.notServed !== undefined) return []
  const frontends = new Map<string, FrontendRow>()
  const backends: BackendRow[] = []
  for (const family of service.families) {
    for (const port of service.ports) {
      const places = placesOf(service, port, family)
      if (places.length === 0) continue
      const id = serviceId({ namespace: service.namespace, name: service.name, port: port.name, family })
      const rows = backendRows(id, endpointsOf({ service, port, family, slices }), context)
      for (const place of places) {
        const row: FrontendRow = {
          table: 'frontends',
          key: { addr: place.addr, port: place.port, proto: port.protocol },
          value: { service: id, count: rows.length, flags: place.flags },
        }
        // an address may be listed twice, as external and as load balancer's: the first kind stays
        if (!frontends.has(claimKey(row))) frontends.set(claimKey(row), row)
      }
      backends.push(...rows)
    }
  }
  return [...[...frontends.values()].sort(compareFrontends), ...backends.sort(compareBackends)]
}

interface Place {
  readonly addr: Addr
  readonly port: Port
  readonly flags: number
}

function placesOf(service: Service, port: ServicePort, family: Family): readonly Place[] {
  const v4 = family === 'IPv4'
  const ofFamily = (addrs: readonly Addr[], flags: number): Place[] =>
    addrs.filter((addr) => isV4(addr) === v4).map((addr) => ({ addr, port: port.port, flags }))
  // without source ranges in the data plane, serving these addresses would open them to everybody
  const loadBalancerIPs = service.loadBalancerSourceRanges.length === 0 ? service.loadBalancerIPs : []
  const places = [
    ...ofFamily(service.clusterIPs, 0),
    ...ofFamily(service.externalIPs, FRONTEND_EXTERNAL),
    ...ofFamily(loadBalancerIPs, FRONTEND_EXTERNAL),
  ]
  if (port.nodePort !== undefined)
    places.push({ addr: v4 ? ANY_V4 : ANY_V6, port: port.nodePort, flags: FRONTEND_NODE_PORT | FRONTEND_EXTERNAL })
  return places
}

interface Target {
  readonly addr: Addr
  readonly port: Port
  readonly nodeName: string | undefined
}

interface EndpointQuery {
  readonly service: Service
  readonly port: ServicePort
  readonly family: Family
  readonly slices: readonly EndpointSlice[]
}

/** Ready endpoints of the port, each address and port once, sorted. */
function endpointsOf(query: EndpointQuery): readonly Target[] {
  const targets = new Map<string, Target>()
  for (const slice of query.slices) {
    if (slice.addressType !== query.family) continue
    for (const { name, protocol, port } of slice.ports) {
      if (name !== query.port.name || protocol !== query.port.protocol) continue
      for (const { addr, state, nodeName } of slice.endpoints) {
        if (!state.ready && !query.service.publishNotReadyAddresses) continue
        const key = `${addr}${port}`
        if (!targets.has(key)) targets.set(key, { addr, port, nodeName })
      }
    }
  }
  return [...targets.values()].sort((a, b) => compareText(a.addr, b.addr) || a.port - b.port)
}

function backendRows(id: ServiceId, targets: readonly Target[], context: ServiceContext): BackendRow[] {
  return targets.map(({ addr, port, nodeName }, slot) => {
    const v4 = isV4(addr)
    const node = nodeName === undefined ? undefined : context.otherNode(nodeName, v4)
    return { table: 'backends', key: { service: id, slot }, value: { addr, node: node ?? (v4 ? ANY_V4 : ANY_V6), port, flags: 0 } }
  })
}
