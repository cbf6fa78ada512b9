// SPDX-License-Identifier: Apache-2.0
/** What the compiler wants to know from the configuration. Layer: agent/compile (pure). */
import type { Port } from '#lib/base/ip.ts'
import type { Knobs, MapSizes } from './desired.ts'

export interface CompileSettings {
  /** of the host side of pods' veths */
  readonly interfacePrefix: string
  /** regular expression over names of devices that get the host programs besides those with the node's addresses */
  readonly dataInterfacePattern: string | undefined
  readonly tunnelVni: number
  readonly tunnelPort: Port
  readonly connectTcp: boolean
  readonly connectUdp: boolean
  readonly timeouts: Knobs['timeouts']
  readonly mapSizes: MapSizes
  /** cgroup2 directory; undefined: find the mount */
  readonly cgroup: string | undefined
}
