// SPDX-License-Identifier: Apache-2.0
/** Ports that policy of host endpoints never cuts. Layer: agent/compile (pure). */
import { FAILSAFE_IN, FAILSAFE_OUT } from '#lib/base/flags.ts'
import { ANY_V4, ANY_V6, protocolNumber, type Cidr, type Port } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { FailsafeRow } from './desired.ts'
import { wholeCidr } from './ranges.ts'

export interface FailsafePort {
  readonly protocol: number
  readonly port: Port
  /** where the other end is; undefined: anywhere */
  readonly net: Cidr | undefined
}

export interface Failsafes {
  /** ports of this node */
  readonly inbound: readonly FailsafePort[]
  /** ports of others that this node asks */
  readonly outbound: readonly FailsafePort[]
}

export function failsafeRows({ inbound, outbound }: Failsafes): readonly FailsafeRow[] {
  return [...inbound.flatMap((port) => rows(FAILSAFE_IN, port)), ...outbound.flatMap((port) => rows(FAILSAFE_OUT, port))]
}

/** Whatever the settings say, policy must not cut this node off from those who could mend the policy. */
export function serverFailsafes(slices: readonly EndpointSlice[]): readonly FailsafeRow[] {
  return slices.flatMap(({ endpoints, ports }) =>
    endpoints.flatMap(({ addr }) =>
      ports.flatMap(({ protocol, port }) => rows(FAILSAFE_OUT, { protocol: protocolNumber(protocol), port, net: wholeCidr(addr) })),
    ),
  )
}

const ANYWHERE: readonly Cidr[] = [
  { addr: ANY_V4, bits: 0 },
  { addr: ANY_V6, bits: 0 },
]

function rows(direction: number, { protocol, port, net }: FailsafePort): readonly FailsafeRow[] {
  const nets = net === undefined ? ANYWHERE : [net]
  return nets.map((cidr) => ({ table: 'failsafes', key: { direction, protocol, port, cidr }, value: undefined }))
}
