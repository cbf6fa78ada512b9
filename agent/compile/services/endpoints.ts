// SPDX-License-Identifier: Apache-2.0
/** Which endpoints of a service port get new flows, as upstream's proxy chooses them. Layer: agent/compile (pure). */
import type { Addr, Port } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { EndpointHints, EndpointSlice, EndpointState } from '#lib/model/endpoint-slice.ts'
import type { Family, Service, ServicePort } from '#lib/model/service.ts'

export interface Target {
  readonly addr: Addr
  readonly port: Port
  readonly nodeName: string | undefined
  readonly state: EndpointState
  readonly hints: EndpointHints | undefined
}

/** Where the choice is made. */
export interface Place {
  readonly node: string
  readonly zone: string | undefined
}

/** Each sorted by address and port. */
export interface Endpoints {
  /** those that flows may stay with */
  readonly serving: readonly Target[]
  /** for traffic policy Cluster */
  readonly cluster: readonly Target[]
  /** for traffic policy Local */
  readonly local: readonly Target[]
}

export interface EndpointQuery {
  readonly service: Pick<Service, 'publishNotReadyAddresses'>
  readonly port: Pick<ServicePort, 'name' | 'protocol'>
  readonly family: Family
  readonly slices: readonly EndpointSlice[]
}

export function chooseEndpoints(query: EndpointQuery, place: Place): Endpoints {
  const all = targetsOf(query)
  const ready = all.filter(({ state }) => state.ready)
  const near = nearest(ready, place)
  return {
    serving: all.filter(({ state }) => state.ready || state.serving),
    cluster: near.length > 0 ? near : leaving(all),
    local: localOnes(all, place.node),
  }
}

/** When nothing is ready any more, what goes on serving until it ends is better than nothing. */
function leaving(targets: readonly Target[]): readonly Target[] {
  return targets.filter(({ state }) => state.serving && state.terminating)
}

function localOnes(all: readonly Target[], node: string): readonly Target[] {
  const local = all.filter(({ nodeName }) => nodeName === node)
  const ready = local.filter(({ state }) => state.ready)
  return ready.length > 0 ? ready : leaving(local)
}

/** Those meant for this node, else for this zone; all of them unless every one has such a hint and one is for us. */
function nearest(ready: readonly Target[], { node, zone }: Place): readonly Target[] {
  return hintedFor(ready, (hints) => hints.nodes, node) ?? hintedFor(ready, (hints) => hints.zones, zone) ?? ready
}

function hintedFor(
  ready: readonly Target[],
  names: (hints: EndpointHints) => readonly string[],
  name: string | undefined,
): readonly Target[] | undefined {
  if (name === undefined || ready.some(({ hints }) => hints === undefined || names(hints).length === 0)) return undefined
  const meant = ready.filter(({ hints }) => hints !== undefined && names(hints).includes(name))
  return meant.length === 0 ? undefined : meant
}

/** Each address and port once: while an endpoint moves from one slice to another both may have it, and the better
 * state is the newer. */
function targetsOf({ service, port, family, slices }: EndpointQuery): readonly Target[] {
  const targets = new Map<string, Target>()
  for (const slice of slices) {
    if (slice.addressType !== family) continue
    for (const { name, protocol, port: number } of slice.ports) {
      if (name !== port.name || protocol !== port.protocol) continue
      for (const { addr, state: said, nodeName, hints } of slice.endpoints) {
        const state = service.publishNotReadyAddresses && !said.ready ? { ...said, ready: true } : said
        const key = `${addr}${number}`
        const known = targets.get(key)
        if (known === undefined || quality(state) > quality(known.state)) targets.set(key, { addr, port: number, nodeName, state, hints })
      }
    }
  }
  return [...targets.values()].sort((a, b) => compareText(a.addr, b.addr) || a.port - b.port)
}

function quality(state: EndpointState): number {
  return state.ready ? 2 : state.serving ? 1 : 0
}
