// SPDX-License-Identifier: Apache-2.0
/** Values of np_addrs from the fields that matter. Layer: testkit. */
import { NO_RULES } from '#agent/dataplane/maps/encode-rows.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'

export function addrInfo(kind: number, rest: Partial<AddrInfo> = {}): AddrInfo {
  return { kind, flags: 0, ifindex: 0, ...NO_RULES, ...rest }
}
