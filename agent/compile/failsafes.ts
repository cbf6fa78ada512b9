// SPDX-License-Identifier: Apache-2.0
/** Ports that policy of host endpoints never cuts. Layer: agent/compile (pure). */
import { FAILSAFE_IN, FAILSAFE_OUT, FAILSAFE_PORTS } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, protocolNumber, type Cidr } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { FailsafePort, Failsafes } from '#lib/model/failsafe.ts'
import type { FailsafeRow, SparedRow } from './desired.ts'
import { wholeCidr } from './prefix-sets.ts'

export function failsafeRows({ inbound, outbound }: Failsafes): readonly (FailsafeRow | SparedRow)[] {
  return [...rows(FAILSAFE_IN, inbound), ...rows(FAILSAFE_OUT, outbound)]
}

/** Whatever the settings say, policy must not cut this node off from the API servers: only through them can an
 * administrator correct the policy. */
export function serverFailsafes(slices: readonly EndpointSlice[]): readonly (FailsafeRow | SparedRow)[] {
  const servers = slices.flatMap(({ endpoints, ports }) =>
    endpoints.flatMap(({ addr }) =>
      ports.map(({ protocol, port }) => ({ protocol: protocolNumber(protocol), port, net: wholeCidr(addr) })),
    ),
  )
  return rows(FAILSAFE_OUT, servers)
}

const ANYWHERE: readonly Cidr[] = [
  { addr: ANY_V4, bits: 0 },
  { addr: ANY_V6, bits: 0 },
]

function rows(direction: number, ports: readonly FailsafePort[]): readonly (FailsafeRow | SparedRow)[] {
  const slots = new Set(ports.map(({ port }) => direction * FAILSAFE_PORTS + (port % FAILSAFE_PORTS)))
  return [
    ...[...slots].map((slot): SparedRow => ({ table: 'spared', key: { slot }, value: undefined })),
    ...ports.flatMap(({ protocol, port, net }) =>
      (net === undefined ? ANYWHERE : [net]).map((cidr): FailsafeRow => {
        return { table: 'failsafes', key: { direction, protocol, port, cidr }, value: undefined }
      }),
    ),
  ]
}
