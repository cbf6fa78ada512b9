// SPDX-License-Identifier: Apache-2.0
/** Health checks: what load balancers learn of a service's endpoints on this node. Layer: agent/compile (pure). */
import type { Addr } from '#lib/base/ip.ts'
import type { Endpoint, EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Service } from '#lib/model/service.ts'
import type { HealthCheck } from '../desired.ts'
import { StatedByKey, type Stated } from './stated.ts'

/** undefined for services that no load balancer asks about. Endpoints that are going count no more, though they may
 * still serve. */
export function healthCheckOf(service: Service, slices: readonly EndpointSlice[], node: string): HealthCheck | undefined {
  const { namespace, name, healthCheckNodePort: port } = service
  if (port === undefined || service.notServed !== undefined || service.externalTrafficPolicy !== 'Local') return undefined
  const ready = newestOf(slices).filter(
    ({ endpoint: { nodeName }, said }) => nodeName === node && (said.ready || service.publishNotReadyAddresses),
  )
  return { namespace, name, port, localReady: ready.length }
}

/** Each address once. */
function newestOf(slices: readonly EndpointSlice[]): readonly (Stated & { readonly endpoint: Endpoint })[] {
  const found = new StatedByKey<Addr, Stated & { readonly endpoint: Endpoint }>()
  for (const { endpoints, resourceVersion } of slices) {
    for (const endpoint of endpoints) {
      const { addr, pod, state: said } = endpoint
      found.add(addr, { resourceVersion, pod, said, endpoint })
    }
  }
  return [...found]
}
