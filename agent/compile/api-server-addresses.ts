// SPDX-License-Identifier: Apache-2.0
/** Where API servers are reached: no service may have such an address and port. Layer: agent/compile (pure). */
import { ANY_V4, ANY_V6, isV4, isWithin, parseCidr, type Addr, type Port } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Node } from '#lib/model/node.ts'
import type { Service } from '#lib/model/service.ts'
import type { Claim } from './key-conflicts.ts'
import type { AddrRow } from './desired.ts'
import { compareAddrs, frontendClaim } from './row-keys.ts'
import type { NodeSettings } from './settings.ts'

/** Owner of what is kept free for them. Of two that say what an address is the dataplane believes it after pods,
 * nodes and interfaces, and before services. */
export const API_SERVERS = 'server/api'

/** Where the agent asks an API server. */
export interface ApiServerAddress {
  readonly addr: Addr
  readonly port: Port
  /** the address is this node's own */
  readonly here: boolean
}

export interface ApiServersInput {
  /** the agent's own ones */
  readonly servers: readonly ApiServerAddress[]
  /** of default/kubernetes: where other agents may ask, through whatever forwards to them */
  readonly slices: readonly EndpointSlice[]
  readonly service: Service | undefined
  readonly self: Node | undefined
  readonly settings: Pick<NodeSettings, 'nodePortAddresses'>
}

/** Addresses that the agent itself asks go before all claims, those of slices before all but cluster addresses. */
const OWN_RANK = -1
const SAID_RANK = 0.5
/** The cluster address of default/kubernetes is a way to the API server. */
export const API_SERVER_RANK = OWN_RANK - 1

const LOOPBACKS = [parseCidr('127.0.0.0/8'), parseCidr('::1/128')]

/** Where API servers say that they are reached: the endpoints that serve, of the one slice of default/kubernetes that
 * API servers write. Other authors of slices can add some to that service. Those lead its clients, but keep no address
 * free. */
export function apiEndpoints(slices: readonly EndpointSlice[]): readonly EndpointSlice[] {
  return slices
    .filter(({ name }) => name === API_SLICE)
    .map((slice) => ({ ...slice, endpoints: slice.endpoints.filter(({ state }) => state.ready || state.serving) }))
}

const API_SLICE = 'kubernetes'

export function apiServerClaims(input: ApiServersInput): readonly Claim[] {
  const own = input.servers.map((place) => ({ ...place, rank: OWN_RANK }))
  const said = saidPlaces(input).map((place) => ({ ...place, rank: SAID_RANK }))
  // of a key that comes twice the last counts
  return [...said, ...own].flatMap(({ addr, port, here, rank }) => {
    const any = isV4(addr) ? ANY_V4 : ANY_V6
    const addrs = hasNodePorts({ addr, here }, input.settings) ? [addr, any] : [addr]
    return addrs.map((one) => ({ key: frontendClaim({ addr: one, port, proto: 'TCP' }), rank }))
  })
}

/** A service that has other ports there must not have the programs take the address for its own, or they drop what
 * goes to the server. */
export function apiServerRows({ servers, service, ...input }: ApiServersInput): readonly AddrRow[] {
  const addrs = new Set([...servers, ...saidPlaces(input)].map(({ addr }) => addr))
  for (const addr of service?.clusterIPs ?? []) addrs.delete(addr)
  const value = { kind: 0, flags: 0, iface: undefined }
  return [...addrs].map((addr): AddrRow => ({ table: 'addrs', key: { addr }, value })).sort(compareAddrs)
}

function saidPlaces({ slices, self }: Pick<ApiServersInput, 'slices' | 'self'>): readonly ApiServerAddress[] {
  return apiEndpoints(slices).flatMap(({ endpoints, ports }) =>
    endpoints.flatMap(({ addr }) =>
      ports.filter(({ protocol }) => protocol === 'TCP').map(({ port }) => ({ addr, port, here: self?.addresses.includes(addr) === true })),
    ),
  )
}

function hasNodePorts(
  { addr, here }: Pick<ApiServerAddress, 'addr' | 'here'>,
  { nodePortAddresses }: ApiServersInput['settings'],
): boolean {
  if (!here && !isWithin(LOOPBACKS, addr)) return false
  return nodePortAddresses.length === 0 || isWithin(nodePortAddresses, addr)
}
