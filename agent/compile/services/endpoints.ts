// SPDX-License-Identifier: Apache-2.0
/** Which endpoints of a service port get new flows, as upstream's proxy chooses them. Layer: agent/compile (pure). */
import type { Addr, Port } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { EndpointHints, EndpointSlice, EndpointState } from '#lib/model/endpoint-slice.ts'
import type { Family, Service, ServicePort } from '#lib/model/service.ts'
import { StatedByKey } from './stated.ts'
import type { Stated } from './stated.ts'

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
  readonly port: PortName
  readonly family: Family
  readonly slices: readonly EndpointSlice[]
}

type PortName = Pick<ServicePort, 'name' | 'protocol'>

/** Those that have a port of that name, with that port alone: both a service and its slices may have thousands. */
export function slicesByPort(slices: readonly EndpointSlice[]): (port: PortName) => readonly EndpointSlice[] {
  const byPort = new Map<string, EndpointSlice[]>()
  const keyOf = ({ name, protocol }: PortName): string => `${protocol} ${name}`
  for (const slice of slices)
    for (const port of slice.ports) {
      const one = { ...slice, ports: [port] }
      const known = byPort.get(keyOf(port))
      if (known === undefined) byPort.set(keyOf(port), [one])
      else known.push(one)
    }
  return (port) => byPort.get(keyOf(port)) ?? []
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

/** Each address and port once. */
function targetsOf({ service, port, family, slices }: EndpointQuery): readonly Target[] {
  const found = new StatedByKey<string, Stated & { readonly target: Target }>()
  for (const { addressType, ports, endpoints, resourceVersion } of slices) {
    if (addressType !== family) continue
    for (const { name, protocol, port: number } of ports) {
      if (name !== port.name || protocol !== port.protocol) continue
      for (const { addr, pod, state: said, nodeName, hints } of endpoints) {
        const state = service.publishNotReadyAddresses && !said.ready ? { ...said, ready: true } : said
        const target = { addr, port: number, nodeName, state, hints }
        found.add(`${addr}${number}`, { resourceVersion, pod, said, target })
      }
    }
  }
  return Array.from(found, ({ target }) => target).sort((a, b) => compareText(a.addr, b.addr) || a.port - b.port)
}
