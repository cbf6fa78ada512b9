// SPDX-License-Identifier: Apache-2.0
/** What the plugin has to know of its node. Layer: agent/cni. */
import type { Addr } from '#lib/base/ip.ts'
import type { NodeState } from './sandbox-pods.ts'

/** What the node is asked for a pod. */
export interface PodNode extends NodeState {
  /** of the device that has this name now; undefined: there is none */
  indexOf(iface: string): number | undefined
  /** what the kernel lacks of a pod; undefined: nothing */
  missingOf(pod: PodPlace): string | undefined
  /** why no pod can be served; undefined: they can */
  notReady(): string | undefined
}

/** Where a pod is on the node. */
export interface PodPlace {
  readonly iface: string
  /** of the interface, as it is now */
  readonly index: number
  readonly addresses: readonly Addr[]
}
