// SPDX-License-Identifier: Apache-2.0
/** Services: where they are reached and how traffic is to be spread. Layer: lib/model. */
import type { Addr, Cidr, Port, Protocol } from '../base/ip.ts'

export type Family = 'IPv4' | 'IPv6'

/** Why a service is not ours to serve. */
export type NotServed = 'headless' | 'external-name' | 'other-proxy' | 'excluded'

/** Maglev: the same endpoint on every node that a packet of the flow may come to. */
export type BackendSelection = 'Random' | 'Maglev'

export type TrafficPolicy = 'Cluster' | 'Local'

export interface ServicePort {
  /** empty when the service has one unnamed port */
  readonly name: string
  readonly protocol: Protocol
  readonly port: Port
  readonly nodePort: Port | undefined
  /** number or name of the pods' port; endpoint slices have it resolved */
  readonly targetPort: number | string
}

export interface Service {
  readonly kind: 'Service'
  readonly namespace: string
  readonly name: string
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
  readonly notServed: NotServed | undefined
  /** at least one unless `notServed`; frontends of other families are not made */
  readonly families: readonly Family[]
  readonly clusterIPs: readonly Addr[]
  readonly externalIPs: readonly Addr[]
  /** ingress addresses in mode VIP */
  readonly loadBalancerIPs: readonly Addr[]
  /** clients that may use the load balancer's addresses; undefined: all */
  readonly loadBalancerSourceRanges: readonly Cidr[] | undefined
  /** how flows from outside choose their endpoint; undefined: as the settings say */
  readonly backendSelection: BackendSelection | undefined
  /** TCP and UDP only */
  readonly ports: readonly ServicePort[]
  readonly externalTrafficPolicy: TrafficPolicy
  readonly internalTrafficPolicy: TrafficPolicy
  /** how long a client address stays with its backend; undefined: no affinity */
  readonly affinitySeconds: number | undefined
  readonly publishNotReadyAddresses: boolean
  readonly healthCheckNodePort: Port | undefined
  /** ms since 1970: when the API server took it; undefined: nothing says so, as in most manifests of a directory */
  readonly created?: number | undefined
}
