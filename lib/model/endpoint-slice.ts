// SPDX-License-Identifier: Apache-2.0
/** Endpoint slices: the addresses behind a service. Layer: lib/model. */
import type { Addr, Port, Protocol } from '../base/ip.ts'
import type { Family } from './service.ts'

/** One of eight shared values, so that a hundred thousand endpoints do not hold three fields each. */
export interface EndpointState {
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
}

export interface Endpoint {
  /** the first of its addresses: the API leaves the meaning of further ones open */
  readonly addr: Addr
  /** which pod has it, as a number made of the pod's id; 0: the slice does not say. Different numbers are different
   * pods */
  readonly pod: number
  readonly state: EndpointState
  readonly nodeName: string | undefined
  readonly zone: string | undefined
  /** clients for which the endpoint is meant in the first place; undefined: it has no hints */
  readonly hints: EndpointHints | undefined
}

/** Names; empty where there are none. */
export interface EndpointHints {
  readonly nodes: readonly string[]
  readonly zones: readonly string[]
}

/** A port without a number means "all ports" and cannot be proxied: it is not in the model. */
export interface EndpointPort {
  readonly name: string
  readonly protocol: Protocol
  readonly port: Port
}

export interface EndpointSlice {
  readonly kind: 'EndpointSlice'
  readonly namespace: string
  readonly name: string
  /** name of its service in the same namespace; undefined when it belongs to none or is left to others */
  readonly service: string | undefined
  /** the same where it belongs to one that is left to others or has no address of its own */
  readonly unserved?: string
  /** FQDN slices have no endpoints here */
  readonly addressType: Family | 'FQDN'
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
  /** as the API server counts its writes: of two slices the one written later has the larger one. Those of manifests
   * have none */
  readonly resourceVersion?: number
  /** when what led to the slice's last change happened, ms since 1970 */
  readonly triggered?: number
}

const states: readonly EndpointState[] = Array.from({ length: 8 }, (_, bits) =>
  Object.freeze({ ready: (bits & 1) !== 0, serving: (bits & 2) !== 0, terminating: (bits & 4) !== 0 }),
)

const neverUsed: EndpointState = Object.freeze({ ready: false, serving: false, terminating: false })

/** The shared value with these three conditions. */
export function endpointState(ready: boolean, serving: boolean, terminating: boolean): EndpointState {
  return states[Number(ready) + 2 * Number(serving) + 4 * Number(terminating)] ?? neverUsed
}
