// SPDX-License-Identifier: Apache-2.0
/** A packet as one readable line, with its checksums judged, for the messages of failed tests. Layer: testkit. */
import { addrFromBytes, formatAddr } from '#lib/base/ip.ts'
import { checksum, concat } from './packet.ts'

/** `IPv4 10.0.0.1:4000 > 10.0.0.2:80 TCP S ttl 64 len 60 ip-csum ok l4-csum ok | 0a0b…`; never throws. */
export function packetText(frame: Uint8Array): string {
  const type = at16(frame, 12)
  if (type === 0x0806) return `ARP op ${at16(frame, 20)} ${hex(frame.subarray(22))}`
  if (type !== 0x0800 && type !== 0x86dd) return `ethertype ${type.toString(16)} ${hex(frame)}`
  const { v4, ip, header, proto, src, dst, l4 } = readIp(frame)
  const head = `${v4 ? 'IPv4' : 'IPv6'} ttl ${(v4 ? ip[8] : ip[7]) ?? 0} len ${ip.length}`
  const ipSum = v4 ? ` ip-csum ${checksum([ip.subarray(0, header)]) === 0 ? 'ok' : 'BAD'}` : ''
  return `${head}${ipSum} ${src} > ${dst} ${l4Text(proto, l4, { ip, v4 })}`
}

export interface IpRead {
  readonly v4: boolean
  readonly ip: Uint8Array
  /** its length */
  readonly header: number
  readonly proto: number
  readonly src: string
  readonly dst: string
  readonly l4: Uint8Array
}

/** Whatever the frame holds behind its VLAN tags is read as IP. */
export function readIp(frame: Uint8Array): IpRead {
  let type = 12
  while (at16(frame, type) === 0x8100 || at16(frame, type) === 0x88a8) type += 4
  const v4 = at16(frame, type) === 0x0800
  const ip = frame.subarray(type + 2)
  const header = v4 ? ((ip[0] ?? 0) & 15) * 4 : 40
  const proto = (v4 ? ip[9] : ip[6]) ?? 0
  const src = formatAddr(addrFromBytes(v4 ? mapped(ip.subarray(12, 16)) : ip.subarray(8, 24)))
  const dst = formatAddr(addrFromBytes(v4 ? mapped(ip.subarray(16, 20)) : ip.subarray(24, 40)))
  return { v4, ip, header, proto, src, dst, l4: ip.subarray(header) }
}

function l4Text(proto: number, l4: Uint8Array, about: { readonly ip: Uint8Array; readonly v4: boolean }): string {
  const { ip, v4 } = about
  const pseudo = concat([v4 ? ip.subarray(12, 20) : ip.subarray(8, 40), Uint8Array.from([0, proto, l4.length >> 8, l4.length & 255])])
  const sum = checksum([pseudo, l4]) === 0 ? 'ok' : 'BAD'
  const ports = `${at16(l4, 0)} > ${at16(l4, 2)}`
  if (proto === 6)
    return `TCP ${ports} flags ${(l4[13] ?? 0).toString(16)} seq ${at32(l4, 4)} ack ${at32(l4, 8)} csum ${sum} | ${hex(l4.subarray(20))}`
  if (proto === 17 && at16(l4, 2) === 4789) {
    return `UDP ${ports} VXLAN vni ${at32(l4, 12) >>> 8} [${packetText(l4.subarray(16))}]`
  }
  if (proto === 17) return `UDP ${ports} csum ${at16(l4, 6) === 0 ? 'none' : sum} | ${hex(l4.subarray(8))}`
  if (proto === 1)
    return `ICMP ${l4[0] ?? 0}/${l4[1] ?? 0} word ${at32(l4, 4)} csum ${checksum([l4]) === 0 ? 'ok' : 'BAD'} | ${hex(l4.subarray(8))}`
  if (proto === 58) return `ICMPv6 ${l4[0] ?? 0}/${l4[1] ?? 0} word ${at32(l4, 4)} csum ${sum} | ${hex(l4.subarray(8))}`
  return `proto ${proto} | ${hex(l4)}`
}

function mapped(v4: Uint8Array): Uint8Array {
  return concat([Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]), v4])
}

function at16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

function at32(bytes: Uint8Array, at: number): number {
  return at16(bytes, at) * 0x10000 + at16(bytes, at + 2)
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
