// SPDX-License-Identifier: Apache-2.0
/** What the flow table has of each flow, with what was counted. Layer: agent/flows (pure). */
import type { FlowReader } from '../dataplane/conntrack/reader.ts'
import { enumValue, type Btf } from '../maps/btf.ts'
import type { Chunk } from '../maps/chunks.ts'
import { bind, bindKey } from '../maps/codec.ts'
import { flowTuple, reversed, type Direction } from '../maps/flow-key.ts'
import { structLayout } from '../maps/layout.ts'
import { ctKey, ctValue, type CtKey, type CtValue } from '../maps/shapes.ts'
import { viewOf } from '../maps/view.ts'
import type { SeenFlow } from './book.ts'

/** `nowMs` of the programs' clock. A translated flow has two entries, each with the packets of one end. */
export type SeenReader = (chunk: Chunk, nowMs: number) => Iterable<SeenFlow>

/** Throws LayoutError or ParseError when the types of the objects are not those it knows. */
export function seenReader(btf: Btf, reader: Pick<FlowReader, 'read'>): SeenReader {
  const [keys, values] = [bindKey(ctKey, structLayout(btf, 'ct_key')), bind(ctValue, structLayout(btf, 'ct_value'))]
  const bits = { nat: enumValue(btf, 'leg_flag', 'LEG_NAT'), answer: enumValue(btf, 'leg_flag', 'LEG_ANSWER') }
  const isClosed = closedReader(btf)
  return function* (chunk, nowMs) {
    const [keyView, valueView] = [viewOf(chunk.keys), viewOf(chunk.values)]
    for (let at = 0; at < chunk.count; at++) {
      const { expiredMs, proxied } = reader.read(chunk, at, nowMs)
      if (proxied) continue
      const [key, value] = [keys.decode(keyView, at * keys.size), values.decode(valueView, at * values.size)]
      yield { ...endsOf(key, value, bits), proto: key.proto, ...rulesOf(value), closed: isClosed(value), expired: expiredMs > 0 }
    }
  }
}

/** As ct_closing of conntrack/entry.h has it: with DSR the answers do not pass here. */
function closedReader(btf: Btf): (value: CtValue) => boolean {
  const [lo, hi, reset] = ['CT_FIN_LO', 'CT_FIN_HI', 'CT_RST'].map((name) => enumValue(btf, 'ct_state', name))
  const [fins, rst, dsr] = [(lo ?? 0) | (hi ?? 0), reset ?? 0, enumValue(btf, 'leg_flag', 'LEG_DSR')]
  return ({ state, leg }) => {
    if ((state & rst) !== 0) return true
    return leg.some(({ flags }) => (flags & dsr) !== 0) ? (state & fins) !== 0 : (state & fins) === fins
  }
}

interface Bits {
  readonly nat: number
  readonly answer: number
}

type Ends = Pick<SeenFlow, 'sent' | 'flow' | 'lane' | 'forward' | 'back'>

function endsOf(key: CtKey, value: CtValue, { nat, answer }: Bits): Ends {
  const has = (leg: Direction, bit: number): boolean => ((value.leg[leg]?.flags ?? 0) & bit) !== 0
  const opens: Direction = has(0, answer) ? 1 : 0
  const answers: Direction = opens === 0 ? 1 : 0
  const amounts = { forward: amountOf(value, opens), back: amountOf(value, answers) }
  const seen = flowTuple(key, opens)
  // the client's view: its packets leave for the backend
  if (has(opens, nat)) return { ...amounts, sent: seen, flow: { ...seen, dst: value.out.dst, dport: value.out.dport }, lane: key.lane }
  if (!has(answers, nat)) return { ...amounts, sent: seen, flow: seen, lane: key.lane }
  // the backend's view: its answers leave as the service's, for the client
  const sent = reversed(value.out)
  return { ...amounts, sent, flow: { ...sent, dst: seen.dst, dport: seen.dport }, lane: value.lane }
}

function amountOf({ leg }: CtValue, of: Direction): SeenFlow['forward'] {
  const { packets = 0, bytes = 0 } = leg[of] ?? {}
  return { packets, bytes }
}

function rulesOf(value: CtValue): Pick<SeenFlow, 'egress_rule' | 'ingress_rule' | 'staged_egress_rule' | 'staged_ingress_rule'> {
  const { egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule } = value
  return { egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule }
}
