// SPDX-License-Identifier: Apache-2.0
/** Health checks: what load balancers learn of a service's endpoints on this node. Layer: agent/compile (pure). */
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Service } from '#lib/model/service.ts'
import type { HealthCheck } from '../desired.ts'

/** undefined for services that no load balancer asks about. Endpoints that are going count no more, though they may
 * still serve. */
export function healthCheckOf(service: Service, slices: readonly EndpointSlice[], node: string): HealthCheck | undefined {
  const { namespace, name, healthCheckNodePort: port } = service
  if (port === undefined || service.notServed !== undefined || service.externalTrafficPolicy !== 'Local') return undefined
  const ready = slices
    .flatMap((slice) => slice.endpoints)
    .filter(({ nodeName, state }) => nodeName === node && (state.ready || service.publishNotReadyAddresses))
  return { namespace, name, port, localReady: new Set(ready.map(({ addr }) => addr)).size }
}
