// SPDX-License-Identifier: Apache-2.0
/** Entries of the flow table as whoever counts and clears them sees them: by their bytes, for there may be a million. Layer: agent/dataplane (pure). */
import { LayoutError } from '#lib/base/errors.ts'
import type { Knobs } from '../compile/desired.ts'
import { enumValues, type Btf } from '../maps/btf.ts'
import { structLayout, type Layout } from '../maps/layout.ts'
import { LITTLE_ENDIAN } from '../maps/view.ts'
import type { Chunk } from './chunks.ts'

/** ms without a packet after which programs take an entry for none */
export type FlowTimeouts = Knobs['timeouts']

export const FLOW_STATES = ['opening', 'open', 'closing', 'reset', 'one-way', 'two-way', 'other'] as const
export type FlowState = (typeof FLOW_STATES)[number]
export const FLOW_PROTOCOLS = ['tcp', 'udp', 'other'] as const
export type FlowProtocol = (typeof FLOW_PROTOCOLS)[number]

/** One entry. A translated flow has two, both as old as each other. */
export interface FlowEntry {
  readonly proto: FlowProtocol
  readonly state: FlowState
  readonly translated: boolean
  /** ms since programs took it for none; negative: for so long they will not */
  readonly expiredMs: number
}

const [TCP, UDP] = [6, 17]

interface Places {
  readonly key: number
  readonly value: number
  readonly proto: number
  readonly seen: number
  readonly state: number
  readonly flags: readonly number[]
}

/** Reads entries as ct.h does. Throws LayoutError when the types of the objects are not those it knows. */
export class FlowReader {
  readonly #timeouts: FlowTimeouts
  readonly #places: Places
  readonly #bits: { readonly both: number; readonly open: number; readonly fins: number; readonly rst: number; readonly nat: number }

  constructor(btf: Btf, timeouts: FlowTimeouts) {
    this.#timeouts = timeouts
    this.#places = placesOf(btf)
    const bit = (of: string, name: string): number => {
      const value = enumValues(btf, of).get(name)
      if (value === undefined) throw new LayoutError(of, `there is no ${name}`)
      return value
    }
    const state = (name: string): number => bit('ct_state', name)
    this.#bits = {
      both: state('CT_SEEN_LO') | state('CT_SEEN_HI'),
      open: state('CT_TCP_OPEN'),
      fins: state('CT_FIN_LO') | state('CT_FIN_HI'),
      rst: state('CT_RST'),
      nat: bit('leg_flag', 'LEG_NAT'),
    }
  }

  /** Entry `at` of the chunk; `nowMs` of the programs' clock, which is the monotonic one. */
  read({ keys, values }: Pick<Chunk, 'keys' | 'values'>, at: number, nowMs: number): FlowEntry {
    const { key, value, proto, seen, state, flags } = this.#places
    const base = at * value
    const bits = values[base + state] ?? 0
    const number = keys[at * key + proto]
    const kind = number === TCP ? this.#tcp(bits) : number === UDP ? this.#udp(bits) : other(this.#timeouts)
    const translated = flags.some((offset) => (word(values, base + offset) & this.#bits.nat) !== 0)
    return { proto: kind.proto, state: kind.state, translated, expiredMs: nowMs - milliseconds(values, base + seen) - kind.timeout }
  }

  #tcp(bits: number): Kind {
    const { tcpRst, tcpFin, tcpOpen, tcpSyn } = this.#timeouts
    const { rst, fins, open } = this.#bits
    if ((bits & rst) !== 0) return { proto: 'tcp', state: 'reset', timeout: tcpRst }
    if ((bits & fins) !== 0) return { proto: 'tcp', state: 'closing', timeout: tcpFin }
    if ((bits & open) !== 0) return { proto: 'tcp', state: 'open', timeout: tcpOpen }
    return { proto: 'tcp', state: 'opening', timeout: tcpSyn }
  }

  #udp(bits: number): Kind {
    const { udp, udpStream } = this.#timeouts
    const { both } = this.#bits
    if ((bits & both) === both) return { proto: 'udp', state: 'two-way', timeout: udpStream }
    return { proto: 'udp', state: 'one-way', timeout: udp }
  }
}

type Kind = Pick<FlowEntry, 'proto' | 'state'> & { readonly timeout: number }

function other({ icmp }: FlowTimeouts): Kind {
  return { proto: 'other', state: 'other', timeout: icmp }
}

function placesOf(btf: Btf): Places {
  const [key, value] = [structLayout(btf, 'ct_key'), structLayout(btf, 'ct_value')]
  const legs = field(value, 'leg', 'array')
  if (legs.layout.kind !== 'array') throw new LayoutError('ct_value', 'leg is no array')
  const { of, length } = legs.layout
  const flags = field(of, 'flags', 2).offset
  return {
    key: key.size,
    value: value.size,
    proto: field(key, 'proto', 1).offset,
    seen: field(value, 'seen', 8).offset,
    state: field(value, 'state', 1).offset,
    flags: Array.from({ length }, (_, leg) => legs.offset + leg * of.size + flags),
  }
}

/** `is`: its size, for a number. */
function field(layout: Layout, name: string, is: number | 'array'): { readonly offset: number; readonly layout: Layout } {
  const found = layout.kind === 'struct' ? layout.fields.find((one) => one.name === name) : undefined
  if (found === undefined || (is === 'array' ? found.layout.kind !== 'array' : found.layout.kind !== 'int' || found.layout.size !== is))
    throw new LayoutError(layout.kind === 'struct' ? layout.name : layout.kind, `no field ${name} as the agent knows it`)
  return found
}

/** 8 bytes of ns. */
function milliseconds(bytes: Buffer, at: number): number {
  const [low, high] = LITTLE_ENDIAN
    ? [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4)]
    : [bytes.readUInt32BE(at + 4), bytes.readUInt32BE(at)]
  return (high * 2 ** 32 + low) / 1e6
}

function word(bytes: Buffer, at: number): number {
  return LITTLE_ENDIAN ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
}
