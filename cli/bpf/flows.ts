// SPDX-License-Identifier: Apache-2.0
/** Flows out of the entries of np_ct: the two of a translated flow as one. Layer: cli (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { enumValue } from '#agent/maps/btf.ts'
import { flowKey, flowTuple, reversed, type CtTuple, type Direction } from '#agent/maps/flow-key.ts'
import type { CtKey, CtValue } from '#agent/maps/shapes.ts'
import type { RuleNumbers } from '../rules.ts'
import type { Entry, Table } from '../map-tables.ts'

/** What becomes of the packets of one side. */
export interface FlowLeg {
  readonly flags: number
  readonly ifindex: number
  /** the other end of the tunnel, where the flags say that there is one */
  readonly via: Addr
}

/** What one entry tells, be it the only one. */
export interface FlowEnds {
  readonly proto: number
  /** as the side that began it sends */
  readonly sent: CtTuple
  /** as these packets leave; undefined: unchanged */
  readonly forward: CtTuple | undefined
  /** as answers leave, where only they are changed: this is all that is known of the translation */
  readonly answers: CtTuple | undefined
}

export interface Flow extends FlowEnds {
  readonly there: FlowLeg
  readonly back: FlowLeg
  /** bits of enum ct_state */
  readonly state: number
  /** ms of the programs' clock */
  readonly seen: number
  readonly rules: RuleNumbers
  /** one of its two entries is not there: the flow has moved to another backend, or the table was full */
  readonly half: boolean
}

type FlowTable = Table<CtKey, CtValue>

/** Each flow once, of those that are wanted. A translated flow is returned with its client's entry, and the other
 * entry is looked up: nothing is kept. */
export async function* flowsOf(table: FlowTable, isWanted: (ends: FlowEnds) => boolean): AsyncGenerator<readonly Flow[]> {
  const join = new FlowJoin(table, isWanted)
  for await (const part of table.parts()) yield part.flatMap((entry) => join.flow(entry) ?? [])
}

class FlowJoin {
  readonly #table: FlowTable
  readonly #isWanted: (ends: FlowEnds) => boolean
  readonly #bits: { readonly nat: number; readonly answer: number; readonly inner: number }

  constructor(table: FlowTable, isWanted: (ends: FlowEnds) => boolean) {
    this.#table = table
    this.#isWanted = isWanted
    const bit = (name: string): number => enumValue(table.btf, 'leg_flag', name)
    this.#bits = { nat: bit('LEG_NAT'), answer: bit('LEG_ANSWER'), inner: bit('LEG_INNER') }
  }

  /** The flow of an entry; undefined for one that is not wanted, and for an entry that is returned with another one. */
  flow(entry: Entry<CtKey, CtValue>): Flow | undefined {
    const [key, value] = entry
    const direction = has(value, 0, this.#bits.answer) ? 1 : 0
    const back = opposite(direction)
    const ends = this.#ends(entry, direction)
    if (!this.#isWanted(ends)) return undefined
    const { state, seen } = value
    const known = { ...ends, state, seen, rules: value, there: leg(value, direction), back: leg(value, back) }
    if (ends.forward !== undefined) return { ...known, ...this.#behind(key, value) }
    const isBackends = has(value, direction, this.#bits.inner)
    if (isBackends && this.#hasClient(entry, back)) return undefined
    return { ...known, half: isBackends }
  }

  #ends([key, value]: Entry<CtKey, CtValue>, direction: Direction): FlowEnds {
    const isTranslated = has(value, direction, this.#bits.nat)
    return {
      proto: key.proto,
      sent: flowTuple(key, direction),
      forward: isTranslated ? value.out : undefined,
      answers: !isTranslated && has(value, opposite(direction), this.#bits.nat) ? value.out : undefined,
    }
  }

  /** What the backend's entry has to add; where it is, the client's says: packets leave so. */
  #behind({ proto }: CtKey, { out, lane, seen }: CtValue): Pick<Flow, 'half'> & Partial<Pick<Flow, 'back' | 'seen'>> {
    const [key, answering] = flowKey(reversed(out), { proto, lane })
    const value = this.#table.get(key)
    if (value === undefined || !has(value, answering, this.#bits.nat)) return { half: true }
    return { half: false, back: leg(value, answering), seen: Math.max(seen, value.seen) }
  }

  /** Is there a client's entry that leads to this one? What its packets were sent to is in `out`, but where the
   * answer goes out under an address that only the client's node has: there they came to the backend itself. */
  #hasClient([key, value]: Entry<CtKey, CtValue>, answering: Direction): boolean {
    const backend = flowTuple(key, answering)
    const meant = reversed(value.out)
    return [meant, { ...meant, dst: backend.src, dport: backend.sport }].some((tuple) => {
      const [clientKey, direction] = flowKey(tuple, { proto: key.proto, lane: value.lane })
      const client = this.#table.get(clientKey)
      return client !== undefined && has(client, direction, this.#bits.nat) && isSame(client.out, reversed(backend))
    })
  }
}

function has(value: CtValue, direction: Direction, flag: number): boolean {
  return ((value.leg[direction]?.flags ?? 0) & flag) !== 0
}

function leg({ via, leg: legs }: CtValue, direction: Direction): FlowLeg {
  const { flags = 0, ifindex = 0 } = legs[direction] ?? {}
  return { flags, ifindex, via }
}

function opposite(direction: Direction): Direction {
  return direction === 0 ? 1 : 0
}

function isSame(a: CtTuple, b: CtTuple): boolean {
  return a.src === b.src && a.dst === b.dst && a.sport === b.sport && a.dport === b.dport
}
