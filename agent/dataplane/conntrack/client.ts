// SPDX-License-Identifier: Apache-2.0
/** What the client of a translated flow sends, as the flow table has it. Layer: agent/dataplane (pure). */
import { enumValue, type Btf } from '../../maps/btf.ts'
import { decodeBytes } from '../../maps/byte-rows.ts'
import { bind, bindKey } from '../../maps/codec.ts'
import { flowTuple, type CtTuple } from '../../maps/flow-key.ts'
import { structLayout } from '../../maps/layout.ts'
import { ctKey, ctValue } from '../../maps/shapes.ts'

/** Addresses and ports of its client's packets. */
export interface FlowToService {
  readonly sent: CtTuple
  /** behind the translation */
  readonly out: CtTuple
}

/** Undefined: the entry is not a client's view. */
export type ClientOf = (key: Buffer, value: Buffer) => FlowToService | undefined

/** Throws LayoutError or ParseError when the types are not those it knows. */
export function clientReader(btf: Btf): ClientOf {
  const [keys, values] = [bindKey(ctKey, structLayout(btf, 'ct_key')), bind(ctValue, structLayout(btf, 'ct_value'))]
  const translated = enumValue(btf, 'leg_flag', 'LEG_NAT')
  const mask = translated | enumValue(btf, 'leg_flag', 'LEG_ANSWER')
  return (key, value) => {
    const { leg, out } = decodeBytes(values, value)
    const direction = ([0, 1] as const).find((at) => ((leg[at]?.flags ?? 0) & mask) === translated)
    return direction === undefined ? undefined : { sent: flowTuple(decodeBytes(keys, key), direction), out }
  }
}
