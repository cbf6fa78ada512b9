// SPDX-License-Identifier: Apache-2.0
/** The few sums with addresses that an underlay needs: whose subnet, which address in it is free. Layer: lab (pure). */
import { addrBytes, addrFromBytes, formatAddr, formatCidr, isV4, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'

/** Underlay subnets are /24 and /64 around the nodes' addresses. */
export function subnetOf(addr: Addr): Cidr {
  const bits = isV4(addr) ? 24 : 64
  return { addr: maskAddr(addr, bits), bits }
}

/** Each subnet once, in order of first use. */
export function subnetsOf(addrs: Iterable<Addr>): Cidr[] {
  return [...new Map([...addrs].map(subnetOf).map((cidr) => [formatCidr(cidr), cidr])).values()]
}

/** The first free address of the subnet with one of these last bytes; undefined when all are taken. */
export function freeAddress(subnet: Cidr, lastBytes: Iterable<number>, taken: ReadonlySet<Addr>): Addr | undefined {
  for (const last of lastBytes) {
    const bytes = addrBytes(subnet.addr)
    bytes[15] = last
    const addr = addrFromBytes(bytes)
    if (!taken.has(addr)) return addr
  }
  return undefined
}

/** From `from` to `to`, both included, in either direction. */
export function* countBetween(from: number, to: number): Generator<number> {
  const step = from <= to ? 1 : -1
  for (let value = from; value !== to + step; value += step) yield value
}

/** "10.1.2.3/24": an address with its subnet's length. */
export function withBits(addr: Addr, bits: number): string {
  return `${formatAddr(addr)}/${bits}`
}
