// SPDX-License-Identifier: Apache-2.0
/** Which packets, of all protocols and ports. Layer: agent/compile (pure). */
import { shortened } from '../identities/predicates.ts'

/** Sorted, apart, both ends included; of ports, or of ICMP type * 256 + code. */
export type Ranges = readonly (readonly [from: number, to: number])[]

export const FULL: Ranges = [[0, 0xffff]]
export const EMPTY: Ranges = []

/** Ranges by protocol number; 0: protocols that are not named. */
export type ProtocolPorts = ReadonlyMap<number, Ranges>

export const EVERYTHING: ProtocolPorts = new Map([[0, FULL]])

/** Protocols that have ports. */
export const PORT_PROTOCOLS = [6, 17, 132]
export const ICMP_PROTOCOLS = [1, 58]

export function isEverything(plane: ProtocolPorts): boolean {
  return plane === EVERYTHING || [0, ...plane.keys()].every((proto) => isFull(rangesFor(plane, proto)))
}

/** Sorted and joined. */
export function rangesOf(parts: Iterable<readonly [number, number]>): Ranges {
  const result: [number, number][] = []
  for (const [from, to] of [...parts].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else result.push([from, to])
  }
  return result
}

export function outside(ranges: Ranges): Ranges {
  const result: [number, number][] = []
  let from = 0
  for (const [start, end] of ranges) {
    if (start > from) result.push([from, start - 1])
    from = end + 1
  }
  if (from <= 0xffff) result.push([from, 0xffff])
  return result
}

export function common(a: Ranges, b: Ranges): Ranges {
  if (isFull(a)) return b
  if (isFull(b)) return a
  const [few, many] = a.length < b.length ? [a, b] : [b, a]
  const result: [number, number][] = []
  for (const [from, to] of few)
    for (let at = firstEndingAt(many, from); (many[at]?.[0] ?? Infinity) <= to; at++) {
      const [start, end] = many[at] ?? [from, to]
      result.push([Math.max(from, start), Math.min(to, end)])
    }
  return result
}

/** The first of them that does not end before this port. */
function firstEndingAt(ranges: Ranges, port: number): number {
  let [from, to] = [0, ranges.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((ranges[middle]?.[1] ?? port) < port) from = middle + 1
    else to = middle
  }
  return from
}

export function isFull(ranges: Ranges): boolean {
  return ranges.length === 1 && ranges[0]?.[0] === 0 && ranges[0][1] === 0xffff
}

export function isSameRanges(a: Ranges, b: Ranges): boolean {
  return a === b || (a.length === b.length && a.every(([from, to], at) => b[at]?.[0] === from && b[at][1] === to))
}

/** What the plane has of a protocol. */
export function rangesFor(plane: ProtocolPorts, proto: number): Ranges {
  return plane.get(proto) ?? plane.get(0) ?? EMPTY
}

export function intersect(a: ProtocolPorts, b: ProtocolPorts): ProtocolPorts {
  if (a === EVERYTHING) return b
  if (b === EVERYTHING) return a
  return new Map([...new Set([...a.keys(), ...b.keys()])].map((proto) => [proto, common(rangesFor(a, proto), rangesFor(b, proto))]))
}

/** These ranges on these protocols, and nothing else. */
export function only(protocols: Iterable<number>, ranges: Ranges): ProtocolPorts {
  return new Map([[0, EMPTY], ...[...protocols].map((proto) => [proto, ranges] as const)])
}

/** Everything but these ranges on these protocols. */
export function except(protocols: Iterable<number>, ranges: Ranges): ProtocolPorts {
  return new Map([[0, FULL], ...[...protocols].map((proto) => [proto, outside(ranges)] as const)])
}

/** Whole protocols, where the plane has any of them. */
export function supportOf(plane: ProtocolPorts): ProtocolPorts {
  return new Map([...plane].map(([proto, ranges]) => [proto, ranges.length === 0 ? EMPTY : FULL]))
}

export function isNowhere(plane: ProtocolPorts): boolean {
  return [...plane.values()].every((ranges) => ranges.length === 0)
}

/** Equal planes have equal texts. `textOf`: what `rangesText` says. */
export function protocolPortsText(plane: ProtocolPorts, textOf: (ranges: Ranges) => string = rangesText): string {
  const others = textOf(rangesFor(plane, 0))
  const named = [...plane]
    .filter(([proto, ranges]) => proto !== 0 && textOf(ranges) !== others)
    .sort((a, b) => a[0] - b[0])
    .map(([proto, ranges]) => `${proto}:${textOf(ranges)}`)
  return [`*:${others}`, ...named].join(' ')
}

/** Equal ranges have equal texts. */
export function rangesText(ranges: Ranges): string {
  return isFull(ranges) ? 'all' : shortened(ranges.map(([from, to]) => `${from}-${to}`).join(','))
}
