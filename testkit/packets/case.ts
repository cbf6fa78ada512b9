// SPDX-License-Identifier: Apache-2.0
/** The form of a packet case: what is in the maps, then packets through programs, each with what must come out.
 * Layer: testkit. */

import type { Failsafes } from '#lib/model/failsafe.ts'
import type { Policy } from '#lib/model/policy.ts'

/** untracked: what XDP asks, of what comes in */
export type ProgramName = 'from_workload' | 'to_workload' | 'from_host' | 'to_host' | 'untracked'

export interface BackendGiven {
  readonly addr: string
  readonly port: number
  /** address of the node that has it, when it is another */
  readonly node?: string
}

export interface OlderGiven {
  readonly from: string
  readonly to: string
  /** it is believed no longer */
  readonly over?: boolean
}

/** Beside the fixed cluster of cluster.ts: the backends of the service WEB. */
export interface Given {
  readonly backends?: readonly BackendGiven[]
  /** this node's share, which is all that clients outside are sent to; undefined: no such policy */
  readonly outside?: readonly BackendGiven[]
  /** backends that flows may stay with, besides those chosen from */
  readonly alive?: readonly BackendGiven[]
  /** enum frontend_flag of the service's frontends */
  readonly flags?: number
  /** seconds */
  readonly affinity?: number
  /** sources that FRONTEND_RANGES lets in */
  readonly sources?: readonly string[]
  /** all slots of Maglev's table, over and over */
  readonly maglev?: readonly number[]
  /** another proxy's connections go on */
  readonly takeover?: boolean
  /** TCP connections that the kernel's own table has, by the packets of those that opened them */
  readonly older?: readonly OlderGiven[]
  /** further frontends of WEB, 'addr:port' */
  readonly frontends?: readonly string[]
  /** addresses of WEB that may be a host's, without a port: those of `frontends` for example */
  readonly external?: readonly string[]
  /** of nodes of an older version, by their addresses: what their ends of the tunnel take frames for */
  readonly vteps?: Readonly<Record<string, string>>
  /** of the pods that policy.ts names */
  readonly policies?: readonly Policy[]
  /** ports that no policy of the host cuts; default none */
  readonly failsafes?: Failsafes
  /** packets and bytes of flows are not counted */
  readonly uncounted?: boolean
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
  /** the counter that must go up by one, as in enum drop, or enum counter */
  readonly reason?: string
  /** skb mark going in, default 0: a program's word if `arrived` says by which device, else a socket's; on kernels
   * whose test runs take none the case ends here, for what follows relies on the step */
  readonly mark?: number
  /** the device by which the node got it, where packets leave; default: none, it is the node's own; as with marks,
   * not on all kernels */
  readonly arrived?: string
  /** the device that it passes; default: loopback's, and so on all kernels */
  readonly device?: string
  /** and coming out, where it is not what mark.ts says of what became of the packet */
  readonly marked?: number
  /** before the step the maps become these; flows stay */
  readonly given?: Given
  /** before the step this pod of the node goes */
  readonly gone?: string
  /** before the step this address of a pod is given to another pod */
  readonly reused?: string
  /** before the step this address is found to be another node's */
  readonly becomesNode?: string
  /** before the step the overlay pod is behind this node */
  readonly overlayBy?: string
  /** before the step this flow's entry is lost */
  readonly forget?: FlowWanted
  /** before the step these are the policies, and flows are asked about again */
  readonly policies?: readonly Policy[]
  /** with `policies`: flows that are there need not be asked about */
  readonly sameEpoch?: boolean
  /** before the step all flows, and what is known of links and paths, become this much older, in ms */
  readonly age?: number
  /** after the step np_affinity names, for this client, one of these backends: the one that the packet was sent to */
  readonly affinity?: { readonly client: string; readonly among: readonly string[] }
  /** what the flow table must say after the step */
  readonly flows?: readonly FlowWanted[]
}

/** A flow by the tuple of a packet: what its entry says about packets of that direction. */
export interface FlowWanted {
  readonly proto: number
  readonly from: string
  readonly to: string
  /** default 0 */
  readonly lane?: number
  /** there is none */
  readonly gone?: boolean
  /** names of the rules that let it be; '' for none */
  readonly rules?: Partial<Readonly<Record<'egress' | 'ingress' | 'stagedEgress' | 'stagedIngress', string>>>
  /** refreshed within the last second */
  readonly fresh?: boolean
  /** counted of this direction in this entry */
  readonly packets?: number
  /** of IP packets */
  readonly bytes?: number
}

export interface PacketCase {
  readonly name: string
  /** about what programs for kernels before 5.6 do not have */
  readonly newer?: boolean
  readonly given: Given
  readonly steps: readonly Step[]
}
