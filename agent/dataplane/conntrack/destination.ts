// SPDX-License-Identifier: Apache-2.0
/** Where packets of one flow go, as the flow table has it. Layer: agent/dataplane (pure). */
import { protocolNumber, type Addr, type Protocol } from '#lib/base/ip.ts'
import { enumValue, type Btf } from '../../maps/btf.ts'
import { decodeBytes, encodeBytes } from '../../maps/byte-rows.ts'
import { bind, bindKey } from '../../maps/codec.ts'
import { flowKey } from '../../maps/flow-key.ts'
import { structLayout } from '../../maps/layout.ts'
import { ctKey, ctValue } from '../../maps/shapes.ts'

export interface FlowEnd {
  readonly addr: Addr
  readonly port: number
}

/** Its client's packets. */
export interface FlowOfClient {
  readonly from: FlowEnd
  /** as the client asks for it: a service, or what it reaches itself */
  readonly to: FlowEnd
  readonly protocol: Protocol
}

/** Undefined: the table has no such flow. */
export type DestinationOf = (flow: FlowOfClient) => FlowEnd | undefined

/** Throws LayoutError or ParseError when the types are not those it knows. */
export function destinationReader(map: { lookup(key: Uint8Array): Uint8Array | undefined }, btf: Btf): DestinationOf {
  const [key, value] = [bindKey(ctKey, structLayout(btf, 'ct_key')), bind(ctValue, structLayout(btf, 'ct_value'))]
  const translated = enumValue(btf, 'leg_flag', 'LEG_NAT')
  return ({ from, to, protocol }) => {
    const tuple = { src: from.addr, sport: from.port, dst: to.addr, dport: to.port }
    const [wanted, direction] = flowKey(tuple, { proto: protocolNumber(protocol), lane: 0 })
    const bytes = map.lookup(encodeBytes(key, wanted))
    if (bytes === undefined) return undefined
    const { leg, out } = decodeBytes(value, bytes)
    return ((leg[direction]?.flags ?? 0) & translated) === 0 ? to : { addr: out.dst, port: out.dport }
  }
}
