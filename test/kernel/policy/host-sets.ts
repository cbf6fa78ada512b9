// SPDX-License-Identifier: Apache-2.0
/** Rules of the host by hand: one set that denies everything, and endpoints without rules. Layer: test. */
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { HostSets } from '#agent/maps/shapes.ts'

/** A set without rows denies everything. */
export const CLOSED = '00000000000000cc'

export const NO_RULES: HostSets = {
  untracked_ingress: NO_SET,
  untracked_egress: NO_SET,
  early_ingress: NO_SET,
  forward_ingress: NO_SET,
  forward_egress: NO_SET,
  normal_ingress: NO_SET,
  normal_egress: NO_SET,
}
