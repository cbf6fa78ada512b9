// SPDX-License-Identifier: Apache-2.0
/** What the state bits of a flow mean, as conntrack/entry.h has it. Layer: agent/maps (pure). */
import { enumValue, type Btf } from './btf.ts'

export type FlowState = 'opening' | 'open' | 'closing' | 'reset' | 'one-way' | 'two-way' | 'other'
export type FlowProtocol = 'tcp' | 'udp' | 'other'

export interface FlowKind {
  readonly proto: FlowProtocol
  readonly state: FlowState
}

const [TCP, UDP] = [6, 17]

const RESET: FlowKind = { proto: 'tcp', state: 'reset' }
const CLOSING: FlowKind = { proto: 'tcp', state: 'closing' }
const OPEN: FlowKind = { proto: 'tcp', state: 'open' }
const OPENING: FlowKind = { proto: 'tcp', state: 'opening' }
const TWO_WAY: FlowKind = { proto: 'udp', state: 'two-way' }
const ONE_WAY: FlowKind = { proto: 'udp', state: 'one-way' }
const OTHER: FlowKind = { proto: 'other', state: 'other' }

/** Makes the function that tells a flow's kind from the number of its protocol and enum ct_state. Throws ParseError
 * when the BTF has no such enum. */
export function flowKinds(btf: Btf): (protocol: number, bits: number) => FlowKind {
  const bit = (name: string): number => enumValue(btf, 'ct_state', name)
  const both = bit('CT_SEEN_LO') | bit('CT_SEEN_HI')
  const fins = bit('CT_FIN_LO') | bit('CT_FIN_HI')
  const [open, rst] = [bit('CT_TCP_OPEN'), bit('CT_RST')]
  return (protocol, bits) => {
    if (protocol === UDP) return (bits & both) === both ? TWO_WAY : ONE_WAY
    if (protocol !== TCP) return OTHER
    if ((bits & rst) !== 0) return RESET
    if ((bits & fins) !== 0) return CLOSING
    return (bits & open) !== 0 ? OPEN : OPENING
  }
}
