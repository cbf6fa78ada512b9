// SPDX-License-Identifier: Apache-2.0
/** Entries of the flow table as counting and garbage collection read them: by their bytes, for there may be a million.
 * Layer: agent/dataplane (pure). */
import { LayoutError } from '#lib/base/errors.ts'
import type { Knobs } from '../../compile/desired.ts'
import { enumValue, type Btf } from '../../maps/btf.ts'
import type { Chunk } from '../../maps/chunks.ts'
import { flowKinds, type FlowKind, type FlowProtocol, type FlowState } from '../../maps/flow-states.ts'
import { structLayout, type Layout } from '../../maps/layout.ts'
import { LITTLE_ENDIAN } from '../../maps/view.ts'

/** ms without a packet after which programs take an entry for none */
export type FlowTimeouts = Knobs['timeouts']

const TIMEOUT_OF = {
  opening: 'tcpSyn',
  open: 'tcpOpen',
  closing: 'tcpFin',
  reset: 'tcpRst',
  'one-way': 'udp',
  'two-way': 'udpStream',
  other: 'icmp',
} as const satisfies Record<FlowState, keyof FlowTimeouts>

/** One entry. A translated flow has two, both as old as each other. */
export interface FlowEntry {
  readonly proto: FlowProtocol
  readonly state: FlowState
  readonly translated: boolean
  /** kube-proxy's: the kernel translates it */
  readonly proxied: boolean
  /** of a translated flow that came from the network: its client's view, which is one of its two entries */
  readonly fromNetwork: boolean
  /** one end alone has sent packets, or its TCP connection is not open yet, or over: it makes room before others do */
  readonly evictedFirst: boolean
  /** ms since its last packet, as far as programs note that */
  readonly idleMs: number
  /** ms since programs took it for none; negative: for so long they will not */
  readonly expiredMs: number
}

const ADDR_BYTES = 16

interface Places {
  readonly key: number
  readonly value: number
  readonly proto: number
  readonly seen: number
  readonly state: number
  /** of each leg */
  readonly flags: readonly number[]
  readonly via: number
}

/** Reads entries as conntrack/entry.h does. Throws LayoutError or ParseError when the types of the objects are not
 * those it knows. */
export class FlowReader {
  readonly #timeouts: FlowTimeouts
  readonly #places: Places
  readonly #kinds: ReturnType<typeof flowKinds>
  readonly #nat: number
  readonly #foreign: number
  /** what tells the leg of a client that is neither the node nor a pod of it */
  readonly #client: { readonly mask: number; readonly network: number }
  readonly #isEvictedFirst: (kind: FlowKind, bits: number, legFlags: number) => boolean

  constructor(btf: Btf, timeouts: FlowTimeouts) {
    this.#timeouts = timeouts
    this.#places = placesOf(btf)
    this.#kinds = flowKinds(btf)
    this.#nat = enumValue(btf, 'leg_flag', 'LEG_NAT')
    this.#foreign = enumValue(btf, 'ct_state', 'CT_FOREIGN')
    const others = enumValue(btf, 'leg_flag', 'LEG_ANSWER') | enumValue(btf, 'leg_flag', 'LEG_BY_NODE')
    this.#client = { mask: this.#nat | others, network: this.#nat }
    this.#isEvictedFirst = evictedFirst(btf)
  }

  /** The address of the tunnel's other end, in these bytes of a value. */
  via(value: Buffer): Buffer {
    return value.subarray(this.#places.via, this.#places.via + ADDR_BYTES)
  }

  /** Entry `at` of the chunk; `nowMs` of the programs' clock, which is the monotonic one. */
  read({ keys, values }: Pick<Chunk, 'keys' | 'values'>, at: number, nowMs: number): FlowEntry {
    const { key, value, proto, seen, state, flags } = this.#places
    const base = at * value
    const bits = values[base + state] ?? 0
    const kind = this.#kinds(keys[at * key + proto] ?? 0, bits)
    let [legFlags, fromNetwork] = [0, false]
    for (const place of flags) {
      const leg = word(values, base + place)
      legFlags |= leg
      fromNetwork ||= (leg & this.#client.mask) === this.#client.network
    }
    const idleMs = nowMs - milliseconds(values, base + seen)
    const proxied = (bits & this.#foreign) !== 0
    return {
      proto: kind.proto,
      state: kind.state,
      translated: (legFlags & this.#nat) !== 0,
      proxied,
      fromNetwork,
      evictedFirst: this.#isEvictedFirst(kind, bits, legFlags),
      idleMs,
      expiredMs: idleMs - this.#timeouts[proxied && kind.state === 'two-way' ? 'udp' : TIMEOUT_OF[kind.state]],
    }
  }
}

function placesOf(btf: Btf): Places {
  const [key, value] = [structLayout(btf, 'ct_key'), structLayout(btf, 'ct_value')]
  const legs = field(value, 'leg', 'array')
  if (legs.layout.kind !== 'array') throw new LayoutError('ct_value', 'leg is no array')
  const { of, length } = legs.layout
  const first = legs.offset + field(of, 'flags', 2).offset
  return {
    key: key.size,
    value: value.size,
    proto: field(key, 'proto', 1).offset,
    seen: field(value, 'seen', 8).offset,
    state: field(value, 'state', 1).offset,
    via: field(value, 'via', 'struct').offset,
    flags: Array.from({ length }, (_, leg) => first + leg * of.size),
  }
}

/** Makes what tells whether one end alone has sent packets of a flow, its TCP connection is not open, or its ends have
 * closed it, of enum ct_state and enum leg_flag of both legs: is_evicted_first of conntrack/evict.h. */
function evictedFirst(btf: Btf): (kind: FlowKind, bits: number, legFlags: number) => boolean {
  const bit = (name: string): number => enumValue(btf, 'ct_state', name)
  const both = bit('CT_SEEN_LO') | bit('CT_SEEN_HI')
  const fins = bit('CT_FIN_LO') | bit('CT_FIN_HI')
  const [open, rst, dsr] = [bit('CT_TCP_OPEN'), bit('CT_RST'), enumValue(btf, 'leg_flag', 'LEG_DSR')]
  return ({ proto }, bits, legFlags) => {
    if ((bits & open) === 0 && (proto === 'tcp' || (bits & both) !== both)) return true
    return (bits & rst) !== 0 || (bits & fins) === fins || ((bits & fins) !== 0 && (legFlags & dsr) !== 0)
  }
}

/** `is`: its size, for a number. */
function field(layout: Layout, name: string, is: number | 'array' | 'struct'): { readonly offset: number; readonly layout: Layout } {
  const found = layout.kind === 'struct' ? layout.fields.find((one) => one.name === name) : undefined
  if (found === undefined || (typeof is === 'string' ? found.layout.kind !== is : found.layout.kind !== 'int' || found.layout.size !== is))
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
