// SPDX-License-Identifier: Apache-2.0
/** The form of a packet case: what is in the maps, then packets through programs, each with what must come out. Layer: test. */

export type ProgramName = 'from_workload' | 'to_workload' | 'from_host' | 'to_host'

export interface BackendGiven {
  readonly addr: string
  readonly port: number
  /** address of the node that has it, when it is another */
  readonly node?: string
}

/** Beside the fixed cluster of world.ts: the backends of the service WEB. */
export interface Given {
  readonly backends?: readonly BackendGiven[]
  /** further frontends of WEB, 'addr:port' */
  readonly frontends?: readonly string[]
}

export interface Step {
  readonly say: string
  readonly through: ProgramName
  readonly packet: Uint8Array
  /** pass: to the next program or the kernel's stack; redirect: sent on by us */
  readonly action: 'pass' | 'redirect' | 'drop'
  /** from the Ethernet type on; 'same': unchanged; omitted for drops */
  readonly out?: Uint8Array | 'same'
  /** compare MAC addresses as well */
  readonly macs?: boolean
  /** the counter that must go up by one, as in enum drop */
  readonly reason?: string
  /** skb mark going in: only kernels that take it run the step */
  readonly mark?: number
}

export interface PacketCase {
  readonly name: string
  readonly given: Given
  readonly steps: readonly Step[]
}
