// SPDX-License-Identifier: Apache-2.0
/** What an older version has left on a node, and how it is known: names, and texts of the netfilter tools.
 * Layer: agent/dataplane (pure). */
import { ruleTables, tablesNamed, type RuleTable } from '../netfilter/rule-tables.ts'

/** What names of their chains begin with. This version has none. */
export const OLD_CHAINS = ['npl-', 'netplane-'] as const
/** Rules that they have put into chains of others say so: a hash of what the rule is. */
const OLD_RULE = /--comment "?npl:[A-Za-z0-9_-]{16}"?(?: |$)/
/** Of those that were told to use nftables. */
export const OLD_TABLE = 'netplane'

/** Of their tunnel. What is called so and is no VXLAN device is another's. */
export const OLD_DEVICE = 'vxlan.netplane'

/** From the output of `iptables-save`; tables without anything of theirs are left out. */
export function oldTables(saved: string): RuleTable[] {
  return ruleTables(saved, {
    isChain: (chain) => OLD_CHAINS.some((start) => chain.startsWith(start)),
    isRule: (line) => OLD_RULE.test(line),
  })
}

/** From the output of `nft list tables`: families that have a table of theirs. */
export function oldFamilies(listing: string): string[] {
  return tablesNamed(OLD_TABLE, listing)
}
