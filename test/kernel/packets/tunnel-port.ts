// SPDX-License-Identifier: Apache-2.0
/** The source port that the tunnel gives a flow: the same hash as tunnel_source_port() in bpf/include/l3/encap.h.
 * Layer: test. */

export function tunnelPort(frameTuple: {
  readonly src: string
  readonly dst: string
  readonly sport: number
  readonly dport: number
}): number {
  const last = (addr: string) => lastWord(addr)
  let h = (last(frameTuple.src) ^ last(frameTuple.dst) ^ ((swap16(frameTuple.sport) << 16) | swap16(frameTuple.dport))) >>> 0
  h = (h ^ (h >>> 16)) >>> 0
  h = Math.imul(h, 0x45d9f3b) >>> 0
  h = (h ^ (h >>> 16)) >>> 0
  return 0xc000 | (h & 0x3fff)
}

function swap16(n: number): number {
  return ((n & 0xff) << 8) | (n >> 8)
}

/** the last 4 bytes of the address as a little-endian word */
function lastWord(addr: string): number {
  const bytes = addr.includes(':') ? v6Tail(addr) : addr.split('.').map(Number)
  return ((bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8) | ((bytes[2] ?? 0) << 16) | ((bytes[3] ?? 0) << 24)) >>> 0
}

function v6Tail(addr: string): number[] {
  const low = parseInt(addr.slice(addr.lastIndexOf(':') + 1), 16)
  return [0, 0, low >> 8, low & 255]
}
