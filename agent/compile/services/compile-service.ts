// SPDX-License-Identifier: Apache-2.0
/** A service and its slices → the rows by which packets to it find an endpoint. Layer: agent/compile (pure). */
import {
  ADDR_EXTERNAL,
  ADDR_SERVICE,
  FRONTEND_EXTERNAL,
  FRONTEND_INSIDE_LOCAL,
  FRONTEND_MAGLEV,
  FRONTEND_NODE_PORT,
  FRONTEND_OUTSIDE_LOCAL,
  FRONTEND_PODS,
  FRONTEND_RANGES,
  FRONTEND_TUNNEL,
} from '#lib/base/bpf-constants.ts'
import type { Sliced } from '#lib/base/async/slices.ts'
import { ANY_V4, ANY_V6, isAny, isWithin } from '#lib/base/ip.ts'
import type { Addr, Cidr, Port } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { DataplaneMode } from '#lib/model/node.ts'
import type { BackendSelection, Family, Service, ServicePort } from '#lib/model/service.ts'
import type { AddrRow, Choice, FrontendRow, Row } from '../desired.ts'
import { chooseEndpoints, slicesByPort } from './endpoints.ts'
import type { Place, Target } from './endpoints.ts'
import { listId } from './list-ids.ts'
import { listRows } from './backend-rows.ts'
import type { BackendList, OtherNode } from './backend-rows.ts'
import { MOST_BACKENDS } from './maglev.ts'
import { frontendAddresses, inFamily } from './frontend-addresses.ts'
import type { FrontendAddress } from './frontend-addresses.ts'
import { rangeRows, sourcesOf } from '../prefix-sets.ts'
import { overQuota, type ServiceQuota } from './service-quota.ts'
import { claimKey, compareAddrs, compareFrontends } from '../row-keys.ts'

export interface ServiceContext extends Place {
  readonly otherNode: OtherNode
  readonly selfAddresses: readonly Addr[]
  readonly mode: DataplaneMode
  /** where nodes take tunnel packets, over UDP */
  readonly tunnelPort: Port
  readonly selection: BackendSelection
  /** addresses that are not ours to serve */
  readonly excluded: readonly Cidr[]
  /** whether those are served that a service's author names; default: they are */
  readonly externalIPs?: boolean
  /** rows that one service may have; undefined: as many as it wants */
  readonly most: ServiceQuota | undefined
}

export interface ServiceRows {
  readonly rows: readonly Row[]
  /** why there are none */
  readonly refused?: string
}

/** Rows of all ports, table by table, each sorted by key; none for a service that is not ours to serve, or that
 * would leave others no room. A frontend without a usable endpoint has count 0: connections to it are refused at
 * once. */
export function* compileService(service: Service, slices: readonly EndpointSlice[], context: ServiceContext): Sliced<ServiceRows> {
  if (service.notServed !== undefined) return { rows: [] }
  const frontends = new Map<string, FrontendRow>()
  const lists: BackendList[] = []
  const ranges: Row[] = []
  const wants = { frontends: 0, backends: 0, live: 0, maglev: 0, ranges: 0, endpoints: 0 }
  const slicesOf = slicesByPort(slices)
  for (const family of service.families) {
    // once, and not for each port
    const isServed = (addr: Addr): boolean => !isWithin(context.excluded, addr)
    const named = inFamily(context.externalIPs === false ? { ...service, externalIPs: [] } : service, family, isServed)
    const hasNodePorts = isServed(family === 'IPv4' ? ANY_V4 : ANY_V6)
    for (const port of service.ports) {
      yield
      const places = frontendAddresses(named, hasNodePorts ? port : { ...port, nodePort: undefined }, family)
      if (places.length === 0) continue
      const slicesOfPort = slicesOf(port)
      wants.endpoints += slicesOfPort.reduce((count, { endpoints }) => count + endpoints.length, 0)
      const tooMany = context.most && overQuota(wants, context.most)
      if (tooMany !== undefined) return { rows: [], refused: tooMany }
      const choices = choicesOf({ service, port, family, slices: slicesOfPort }, context)
      const rows: FrontendRow[] = []
      for (const place of places) {
        const row = frontendRow(place, { service, port, choices, context })
        rows.push(row)
        // of an address that is listed twice the first kind stays
        if (!frontends.has(claimKey(row))) frontends.set(claimKey(row), row)
        if (context.most !== undefined && frontends.size > context.most.frontends) break
        yield
      }
      const used = usedLists(choices, rows)
      lists.push(...used)
      const sources = places.some(({ kind }) => kind === 'restricted') ? sourcesOf(named, family, context.selfAddresses) : []
      wants.frontends = frontends.size
      wants.ranges += sources.length
      for (const { targets, live, maglev } of used) {
        wants.backends += targets.length
        wants.live += live?.length ?? 0
        wants.maglev += maglev ? 1 : 0
      }
      // before all of it is made: ports and addresses multiply
      const refused = context.most && overQuota(wants, context.most)
      if (refused !== undefined) return { rows: [], refused }
      for (const row of rangeRows(choices.cluster.id, sources)) ranges.push(row)
    }
  }
  const rows = [...frontends.values()].sort(compareFrontends)
  return { rows: [...rows, ...(yield* listRows(lists, context.otherNode)), ...ranges, ...addressRows(rows)] }
}

interface PortQuery {
  readonly service: Service
  readonly port: ServicePort
  readonly family: Family
  readonly slices: readonly EndpointSlice[]
}

type PortList = Omit<BackendList, 'maglev'>

/** What a port's frontends choose from. */
interface Choices {
  readonly cluster: PortList
  readonly local: PortList
  /** some endpoint somewhere could serve */
  readonly served: boolean
  /** one of them is where this node takes tunnel packets */
  readonly hasTunnel: boolean
}

function choicesOf(query: PortQuery, context: ServiceContext): Choices {
  const { service, port, family } = query
  const { serving, cluster, local } = chooseEndpoints(query, context)
  const ref = { namespace: service.namespace, name: service.name, port: port.name, family }
  const kept = service.affinitySeconds !== undefined || port.protocol === 'UDP'
  const here = serving.filter(({ nodeName }) => nodeName === context.node)
  return {
    cluster: { id: listId({ ...ref, local: false }), targets: cluster, own: here, live: kept ? serving : undefined },
    // no other node chooses from it
    local: { id: listId({ ...ref, local: true }), targets: local, own: [], live: kept ? here : undefined },
    served: cluster.length + local.length > 0,
    hasTunnel: context.mode === 'Standard' && port.protocol === 'UDP' && [cluster, local].some((targets) => isToTunnel(targets, context)),
  }
}

interface FrontendOf {
  readonly service: Service
  readonly port: ServicePort
  readonly choices: Choices
  readonly context: ServiceContext
}

/** Pods and processes of this node take the short cut past the external policy, as upstream has it. */
function frontendRow(place: FrontendAddress, { service, port, choices, context }: FrontendOf): FrontendRow {
  const { cluster, local, served, hasTunnel } = choices
  const isCluster = place.kind === 'cluster'
  const inside = isCluster && service.internalTrafficPolicy === 'Local' ? local : cluster
  const outside = isCluster ? inside : service.externalTrafficPolicy === 'Local' ? local : cluster
  const selection = service.backendSelection ?? context.selection
  const fits = outside.targets.length > 0 && outside.targets.length <= MOST_BACKENDS
  const flags =
    (place.kind === 'node-port' ? FRONTEND_NODE_PORT : 0) |
    (isCluster ? 0 : FRONTEND_EXTERNAL) |
    (place.kind === 'restricted' ? FRONTEND_RANGES : 0) |
    (context.mode === 'Standard' ? FRONTEND_PODS : 0) |
    (hasTunnel ? FRONTEND_TUNNEL : 0) |
    (!isCluster && selection === 'Maglev' && fits ? FRONTEND_MAGLEV : 0) |
    // with no endpoint anywhere the answer is a refusal, whatever the policy
    (served && inside === local ? FRONTEND_INSIDE_LOCAL : 0) |
    (served && outside === local ? FRONTEND_OUTSIDE_LOCAL : 0)
  return {
    table: 'frontends',
    key: { addr: place.addr, port: place.port, proto: port.protocol },
    value: { inside: choiceOf(inside), outside: choiceOf(outside), flags, affinity: service.affinitySeconds ?? 0 },
  }
}

/** kube-proxy would send there what a process of the node sends to the service, as from the node itself. */
function isToTunnel(targets: readonly Target[], { tunnelPort }: ServiceContext): boolean {
  return targets.some(({ port }) => port === tunnelPort)
}

function choiceOf({ id, targets }: PortList): Choice {
  return { list: id, count: targets.length }
}

/** Those that these frontends choose from. */
function usedLists({ cluster, local }: Choices, frontends: readonly FrontendRow[]): readonly BackendList[] {
  const uses = ({ value }: FrontendRow, { id }: PortList): boolean => value.inside.list === id || value.outside.list === id
  const hashes = ({ value }: FrontendRow, { id }: PortList): boolean => (value.flags & FRONTEND_MAGLEV) !== 0 && value.outside.list === id
  return [cluster, local]
    .filter((list) => frontends.some((row) => uses(row, list)))
    .map((list) => ({ ...list, maglev: frontends.some((row) => hashes(row, list)) }))
}

/** Each address once. Cluster addresses are of ranges that are for services alone; whose the others are besides is
 * not known. */
function addressRows(frontends: readonly FrontendRow[]): readonly AddrRow[] {
  const rows = new Map<Addr, AddrRow>()
  for (const { key, value } of frontends) {
    const isCluster = (value.flags & FRONTEND_EXTERNAL) === 0
    if (isAny(key.addr) || (rows.has(key.addr) && !isCluster)) continue
    const kind = isCluster ? { kind: ADDR_SERVICE, flags: 0 } : { kind: 0, flags: ADDR_EXTERNAL }
    rows.set(key.addr, { table: 'addrs', key: { addr: key.addr }, value: { ...kind, iface: undefined } })
  }
  return [...rows.values()].sort(compareAddrs)
}
