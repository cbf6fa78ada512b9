// SPDX-License-Identifier: Apache-2.0
/** The whole wanted data plane of one node as plain, printable data: where compile and dataplane meet. Layer: agent/compile (pure). */
import type { Addr, Cidr, Port, Protocol } from '#lib/base/ip.ts'

/** A row of np_frontends. `addr` is the family's any-address for node ports. */
export interface FrontendRow {
  readonly table: 'frontends'
  readonly key: { readonly addr: Addr; readonly port: Port; readonly proto: Protocol }
  readonly value: { readonly service: ServiceId; readonly count: number; readonly flags: number }
}

/** A row of np_backends. `node` is the any-address when the backend is on this node or its node is unknown. */
export interface BackendRow {
  readonly table: 'backends'
  readonly key: { readonly service: ServiceId; readonly slot: number }
  readonly value: { readonly addr: Addr; readonly node: Addr; readonly port: Port; readonly flags: number }
}

/** A row of np_addrs. The interface is a name: only the dataplane knows indexes. A row whose interface is not there waits for it. */
export interface AddrRow {
  readonly table: 'addrs'
  readonly key: { readonly addr: Addr }
  readonly value: { readonly kind: number; readonly iface: string | undefined }
}

export type Row = FrontendRow | BackendRow | AddrRow
export type Table = Row['table']

/** 16 hex digits: a stable hash of namespace/name:port, so that a restarted agent finds its own rows. */
export type ServiceId = string

/** What one object contributes. Owners are refs ("Service/default/web"). Rows are sorted by key. */
export interface Fragment {
  readonly owner: string
  readonly rows: readonly Row[]
}

/** A pod's veth that gets the workload programs. */
export interface WorkloadAttachment {
  readonly iface: string
  readonly pod: string
}

/** Which devices get the host programs: those that carry one of these addresses, or whose name matches the pattern. */
export interface HostAttachment {
  readonly addresses: readonly Addr[]
  readonly pattern: string | undefined
}

/** A route we own (recognised by its protocol number). */
export interface RouteRow {
  readonly cidr: Cidr
  readonly via: Addr
}

/** Read-only knobs of the programs; times in ms, addresses any-address when there is none. */
export interface Knobs {
  readonly nodeV4: Addr
  readonly nodeV6: Addr
  readonly tunnelVni: number
  readonly tunnelPort: Port
  readonly connectTcp: boolean
  readonly connectUdp: boolean
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

export interface MapSizes {
  readonly conntrack: number
  readonly frontends: number
  readonly backends: number
  readonly addrs: number
}

/** Everything but the tables: small, compared as a whole. */
export interface DesiredNode {
  readonly knobs: Knobs
  readonly mapSizes: MapSizes
  readonly workloads: readonly WorkloadAttachment[]
  readonly host: HostAttachment
  readonly routes: readonly RouteRow[]
  /** sysctl path below /proc/sys → value */
  readonly sysctls: Readonly<Record<string, string>>
  /** cgroup2 directory for the connect-time programs; undefined: find the mount */
  readonly cgroup: string | undefined
  readonly connectTime: boolean
}

/** What changed: rows of these owners are replaced by these fragments (an empty fragment removes), and the node part when given. */
export interface DesiredChange {
  readonly fragments: readonly Fragment[]
  readonly node: DesiredNode | undefined
  /** every owner there is is in `fragments`: owners not named are gone */
  readonly complete: boolean
}
