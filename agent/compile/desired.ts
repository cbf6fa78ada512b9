// SPDX-License-Identifier: Apache-2.0
/** The whole wanted data plane of one node as plain, printable data: where compile and dataplane meet.
 * Layer: agent/compile (pure). */
import type { Addr, Cidr, Port, Protocol } from '#lib/base/ip.ts'
import type { PolicyStep } from './policy/tables.ts'

/** 16 hex digits: a stable hash of what the backends are of, so that a restarted agent finds its own rows. */
export type ListId = string

/** Backends to choose from: those in slots 0 .. count-1 of the list. */
export interface Choice {
  readonly list: ListId
  readonly count: number
}

/** What is in the rows of each table, which is the map np_<table>. */
interface Contents {
  /** `addr` is the family's any-address for node ports; flags are FRONTEND_…; affinity in seconds, 0: none */
  readonly frontends: {
    readonly key: { readonly addr: Addr; readonly port: Port; readonly proto: Protocol }
    readonly value: { readonly inside: Choice; readonly outside: Choice; readonly flags: number; readonly affinity: number }
  }
  /** `node` is the any-address when the backend is on this node or its node is unknown; slots from OWN_SLOTS on have
   * those of this node once more, and with them those that no new flow is given */
  readonly backends: {
    readonly key: { readonly list: ListId; readonly slot: number }
    readonly value: { readonly addr: Addr; readonly node: Addr; readonly port: Port; readonly flags: number }
  }
  /** backends that flows may stay with; flags are LIVE_…, and where those say so the slot counts */
  readonly live: {
    readonly key: { readonly list: ListId; readonly addr: Addr; readonly port: Port }
    readonly value: { readonly flags: number; readonly slot: number }
  }
  /** MAGLEV_SIZE numbers of slots */
  readonly maglev: {
    readonly key: { readonly list: ListId }
    readonly value: { readonly slots: Uint16Array }
  }
  /** `set` is the list of a service's `inside`, or RANGE_… as 16 hex digits */
  readonly ranges: {
    readonly key: { readonly set: ListId; readonly cidr: Cidr }
    /** that the prefix is in the set is all */
    readonly value: undefined
  }
  /** pods that are reached in the tunnel to this node */
  readonly routes: {
    readonly key: { readonly cidr: Cidr }
    readonly value: { readonly node: Addr }
  }
  /** the end of the tunnel at a node of an older version, as "66:00:5e:00:53:01" */
  readonly vteps: {
    readonly key: { readonly addr: Addr }
    readonly value: { readonly mac: string }
  }
  /** Ports that policy of host endpoints never cuts. `direction` is FAILSAFE_…, `cidr` where the other end is. */
  readonly failsafes: {
    readonly key: { readonly direction: number; readonly protocol: number; readonly port: Port; readonly cidr: Cidr }
    /** that there is one is all */
    readonly value: undefined
  }
  /** Where programs look first: has `failsafes` any such port? */
  readonly spared: {
    /** FAILSAFE_… * FAILSAFE_PORTS + port % FAILSAFE_PORTS */
    readonly key: { readonly slot: number }
    readonly value: undefined
  }
  /** Kind is ADDR_…, flags as well. The interface is a name: only the dataplane knows indexes. A row whose interface
   * is not there waits for it. */
  readonly addrs: {
    readonly key: { readonly addr: Addr }
    readonly value: { readonly kind: number; readonly flags: number; readonly iface: string | undefined }
  }
}

export type Table = keyof Contents
export type RowOf<T extends Table> = {
  readonly [P in T]: { readonly table: P; readonly key: Contents[P]['key']; readonly value: Contents[P]['value'] }
}[T]
export type Row = RowOf<Table>
export type FrontendRow = RowOf<'frontends'>
export type BackendRow = RowOf<'backends'>
export type LiveRow = RowOf<'live'>
export type MaglevRow = RowOf<'maglev'>
export type RangeRow = RowOf<'ranges'>
export type OverlayRow = RowOf<'routes'>
export type VtepRow = RowOf<'vteps'>
export type AddrRow = RowOf<'addrs'>
export type FailsafeRow = RowOf<'failsafes'>
export type SparedRow = RowOf<'spared'>

/** What one object contributes. Owners are refs ("Service/default/web"). Rows are sorted by key. */
export interface Fragment {
  readonly owner: string
  readonly rows: readonly Row[]
}

/** A pod's veth that gets the workload programs. */
export interface WorkloadAttachment {
  readonly iface: string
  readonly pod: string
  /** no: another CNI plugin has plugged it in */
  readonly ours: boolean
}

/** Which devices get the host programs: those that carry one of these addresses, or whose name matches the pattern,
 * and none that is excluded. */
export interface HostAttachment {
  readonly addresses: readonly Addr[]
  /** where another CNI plugin makes the ways to other nodes' pods: an address of each of their ranges */
  readonly elsewhere: readonly Addr[]
  readonly pattern: string | undefined
  readonly excluded: string
}

/** A port on which load balancers ask whether this node has endpoints of a service of external traffic policy Local. */
export interface HealthCheck {
  readonly namespace: string
  readonly name: string
  readonly port: Port
  /** endpoints on this node that are ready, each address once */
  readonly localReady: number
}

/** A route we own (recognised by its protocol number). */
export interface RouteRow {
  readonly cidr: Cidr
  /** address of the node that has the range */
  readonly via: Addr
  /** Packets that take it are put into the tunnel to `via` by the programs: `via` may be beyond a router. */
  readonly overlay: boolean
}

/** Both ends included. */
export interface PortRange {
  readonly from: Port
  readonly to: Port
}

/** Knobs that are as configured; times in ms. */
export interface KnobSettings {
  readonly tunnelVni: number
  readonly tunnelPort: Port
  /** the tunnel's header has the DSCP of the packet inside */
  readonly tunnelDscp: boolean
  /** and a UDP checksum, which the kernel gives it */
  readonly tunnelChecksum: boolean
  readonly connectTcp: boolean
  readonly connectUdp: boolean
  readonly natPorts: PortRange
  /** backends on other nodes answer clients outside themselves */
  readonly dsr: boolean
  /** SOURCE_… */
  readonly sourceCheck: number
  /** STRAY_… */
  readonly strayService: number
  /** POD_TO_HOST_…: of what pods send to the node */
  readonly podToHost: number
  readonly timeouts: {
    readonly tcpSyn: number
    readonly tcpOpen: number
    readonly tcpFin: number
    readonly tcpRst: number
    readonly udp: number
    readonly udpStream: number
    readonly icmp: number
  }
}

/** Read-only knobs of the programs. */
export interface Knobs extends KnobSettings {
  /** this node's; any-address when there is none */
  readonly nodeV4: Addr
  readonly nodeV6: Addr
  /** there are rows of `routes` */
  readonly overlay: boolean
  /** there are rows of `vteps` */
  readonly vteps: boolean
  /** this node has host endpoints */
  readonly hostPolicy: boolean
  /** and there are policies that are asked of every packet by itself */
  readonly untracked: boolean
  /** there are ClusterNetworkPolicies */
  readonly clusterPolicy: boolean
}

export interface MapSizes {
  readonly conntrack: number
  readonly frontends: number
  readonly backends: number
  readonly affinity: number
  /** endpoints of the whole cluster, nodes, addresses of services */
  readonly addrs: number
  readonly live: number
}

/** What decides which programs and maps there are. */
export type Configuration = Pick<DesiredNode, 'knobs' | 'mapSizes'>

/** Everything but the tables: small, compared as a whole. */
export interface DesiredNode {
  readonly knobs: Knobs
  readonly mapSizes: MapSizes
  readonly workloads: readonly WorkloadAttachment[]
  readonly host: HostAttachment
  /** where node ports are served; empty: on all addresses of this node */
  readonly nodePortAddresses: readonly Cidr[]
  readonly routes: readonly RouteRow[]
  /** other nodes send packets in the tunnel */
  readonly tunnelled: boolean
  /** sorted by namespace and name */
  readonly healthChecks: readonly HealthCheck[]
  /** sysctl path below /proc/sys → value; undefined: as it was before an agent set it */
  readonly sysctls: Readonly<Record<string, string | undefined>>
  /** cgroup2 directory for the connect-time programs; undefined: find the mount */
  readonly cgroup: string | undefined
}

/** What changed: rows of these owners are replaced by these fragments (an empty fragment removes), and the node part
 * when given. */
export interface DesiredChange {
  readonly fragments: readonly Fragment[]
  readonly node: DesiredNode | undefined
  /** to be taken one after the other */
  readonly policy: readonly PolicyStep[]
  /** every owner there is is in `fragments`: owners not named are gone. Steps lead to the whole of policy from
   * wherever one is. */
  readonly complete: boolean
}
