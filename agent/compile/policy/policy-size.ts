// SPDX-License-Identifier: Apache-2.0
/** How much there is of policy on a node, and what of it is too much. Layer: agent/compile (types). */

import type { QuotaTable } from './rulesets/policy-quota.ts'

export interface PolicySize {
  /** of endpoints of the whole cluster */
  readonly addresses: number
  readonly identities: number
  readonly rulesets: number
  readonly groups: number
  /** of this node that some set is for */
  readonly endpoints: number
  /** rules of policies and profiles, and the ends of tiers, that are in some set */
  readonly rules: number
  /** longer than programs look */
  readonly truncatedRuleLists: number
}

/** Policies that are closed, for there is no room for what their namespace wants. */
export interface QuotaExceeded {
  readonly namespace: string
  /** of which it wants more than all others */
  readonly table: QuotaTable
  /** its network sets are what is too large: none of them has a prefix */
  readonly sets: boolean
  /** rows that all policies together may have of it */
  readonly most: number
  /** refs, of those that select endpoints of this node, sorted */
  readonly policies: readonly string[]
}

/** Lines that are longer than programs look. */
export interface TruncatedRuleLists {
  /** endpoints of this node that have them, sorted: "Pod/shop/web" */
  readonly endpoints: readonly string[]
  /** "ingress", "staged ingress" */
  readonly lines: readonly string[]
}
