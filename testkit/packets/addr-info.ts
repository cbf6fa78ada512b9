// SPDX-License-Identifier: Apache-2.0
/** Values of np_addrs from the fields that matter. Layer: testkit. */
import type { AddrInfo } from '#agent/maps/shapes.ts'

/** The id of no set of rules. */
export const NO_SET = '0'.repeat(16)
const NO_SETS = { ingress: NO_SET, egress: NO_SET, staged_ingress: NO_SET, staged_egress: NO_SET }

export function addrInfo(kind: number, rest: Partial<AddrInfo> = {}): AddrInfo {
  return { kind, flags: 0, ifindex: 0, identity: 0, ...NO_SETS, ...rest }
}
