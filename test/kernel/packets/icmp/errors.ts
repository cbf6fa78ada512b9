// SPDX-License-Identifier: Apache-2.0
/** ICMP numbers of both families, and the errors that the programs make. Layer: test. */
import { icmp, l3 } from '../../../../testkit/packets/packet.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'

export interface IcmpNumbers {
  readonly unreachable: [number, number]
  readonly expired: [number, number]
  readonly tooBig: [number, number]
  readonly echo: number
  readonly reply: number
}

export function numbers(f: Family): IcmpNumbers {
  return f.v4
    ? { unreachable: [3, 3], expired: [11, 0], tooBig: [3, 4], echo: 8, reply: 0 }
    : { unreachable: [1, 4], expired: [3, 0], tooBig: [2, 0], echo: 128, reply: 129 }
}

/** The error a node sends about `packet`, quoting as much as the programs quote. */
export function error(
  f: Family,
  about: {
    readonly packet: Uint8Array
    readonly to: string
    readonly kind: [number, number]
    readonly mtu?: number
    readonly from?: string
  },
): Uint8Array {
  const quoted = l3(about.packet)
  const head = f.v4 ? 20 : 40
  const length = quoted.length >= head + 28 ? head + 28 : quoted.length >= head + 20 ? head + 20 : head + 8
  return icmp(about.from ?? f.node, about.to, {
    type: about.kind[0],
    code: about.kind[1],
    word: about.mtu ?? 0,
    body: quoted.subarray(0, length),
    df: false,
  })
}

/** `original` as an error quotes it once `frame`'s quote was translated: the quoted packet's own L4 checksum is left
 * as it was. */
export function quoteAs(f: Family, frame: Uint8Array, original: Uint8Array): Uint8Array {
  const quoted = l3(original).slice()
  const was = l3(frame)
  const csum = (f.v4 ? 20 : 40) + 6
  quoted.set(was.subarray(csum, csum + 2), csum)
  return quoted
}
