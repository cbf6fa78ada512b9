// SPDX-License-Identifier: Apache-2.0
/** What the compiler wants to know from the configuration. Layer: agent/compile (pure). */
import type { Cidr } from '#lib/base/ip.ts'
import type { DataplaneMode } from '#lib/model/node.ts'
import type { BackendSelection } from '#lib/model/service.ts'
import type { KnobSettings, MapSizes } from './desired.ts'
import type { Failsafes } from '#lib/model/failsafe.ts'

/** What all services depend on. */
export interface ServiceSettings {
  /** Standard: kube-proxy serves whatever is no pod's */
  readonly mode: DataplaneMode
  readonly backendSelection: BackendSelection
  /** service addresses that are not ours to serve */
  readonly excluded: readonly Cidr[]
  /** whether services are reached by the addresses in their spec.externalIPs */
  readonly externalIPs: boolean
}

/** What the rows of nodes depend on. */
export interface NodeSettings {
  /** where node ports are served; empty: on all addresses of this node */
  readonly nodePortAddresses: readonly Cidr[]
  /** clients whose answers return through the tunnel though others' do not */
  readonly tunnelBack: readonly Cidr[]
  /** whether flows from pods to nodes keep the pods' addresses, as those to pods do */
  readonly nodesInside: boolean
  readonly failsafes: Failsafes
}

export interface CompileSettings {
  /** of the host side of pods' veths */
  readonly interfacePrefix: string
  /** regular expression over names of devices that get the host programs besides those with the node's addresses */
  readonly dataInterfacePattern: string | undefined
  /** the same over those that never get them */
  readonly excludedInterfaces: string
  /** whether the node is made to forward packets */
  readonly forwards: boolean
  readonly services: ServiceSettings
  readonly nodes: NodeSettings
  readonly knobs: KnobSettings
  readonly mapSizes: MapSizes
  /** cgroup2 directory; undefined: find the mount */
  readonly cgroup: string | undefined
}
