// SPDX-License-Identifier: Apache-2.0
/** Entries of the flow table for tests: everything has a default but what a test is about. Layer: test. */
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import type { FlowTimeouts } from '#agent/dataplane/conntrack/reader.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { CtKey, CtValue } from '#agent/maps/shapes.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { bindDeclared, builtObject } from './compiled.ts'
import { NOT_JUDGED } from './flow-value.ts'

/** As in maps/packets.h. */
export const STATE = { seenLo: 1, seenHi: 2, open: 4, finLo: 8, finHi: 16, rst: 32, foreign: 64 } as const
export const PROTO = { tcp: 6, udp: 17, icmp: 1 } as const
const LEG_NAT = 2

export const TIMEOUTS: FlowTimeouts = {
  tcpSyn: 60_000,
  tcpOpen: 3_600_000,
  tcpFin: 120_000,
  tcpRst: 10_000,
  udp: 30_000,
  udpStream: 180_000,
  icmp: 5_000,
}

export interface FlowSpec {
  readonly number: number
  readonly proto?: number
  readonly state?: number
  readonly translated?: boolean
  /** ms of the monotonic clock */
  readonly seen: number
}

export const flowTypes = builtObject('tc').btf
const codecs = bindDeclared(catalogue.np_ct, flowTypes)

export const FLOW_BYTES = { key: codecs.key.size, value: codecs.value.size }

/** Key and value as the map has them. */
export function flowEntry(spec: FlowSpec): { readonly key: Buffer; readonly value: Buffer } {
  return { key: encodeBytes(codecs.key, flowKey(spec)), value: encodeBytes(codecs.value, flowValue(spec)) }
}

function flowKey({ number, proto = PROTO.tcp }: FlowSpec): CtKey {
  return {
    lo: parseAddr('10.0.0.1'),
    hi: parseAddr(`10.1.${(number >> 16) & 255}.1`),
    lo_port: number & 0xffff,
    hi_port: 80,
    proto,
    lane: 0,
  }
}

function flowValue({ state = STATE.seenLo | STATE.seenHi | STATE.open, translated = false, seen }: FlowSpec): CtValue {
  const leg = { ifindex: 0, mtu: 1500, flags: 0, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
  return {
    seen,
    out: { src: ANY_V6, dst: ANY_V6, sport: 0, dport: 0 },
    state,
    lane: 0,
    via: ANY_V6,
    leg: [leg, translated ? { ...leg, flags: LEG_NAT } : leg],
    slot: 0,
    ...NOT_JUDGED,
  }
}
