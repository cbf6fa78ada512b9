// SPDX-License-Identifier: Apache-2.0
/** Finds what one program has in the kernel's firewall by iptables, and takes it away. Layer: agent/dataplane. */
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { removalInput, type RuleTable } from './rule-tables.ts'

/** Rules of one tool: "iptables-nft" and its tables. */
export interface ToolRules {
  readonly tool: string
  readonly tables: readonly RuleTable[]
}

/** A machine may have rules of both kinds, whichever of them "iptables" is. Listing loads no table that is not
 * there. */
const IPTABLES = ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']
/** Where no tool of a certain kind is installed. */
const PLAIN = ['iptables', 'ip6tables']
/** of other programs that write rules, so that neither reads what the other is about to change */
const LOCK_SECONDS = '10'

/** `read`: the output of `iptables-save`. In the caller's network namespace. Throws CommandError. */
export async function findTables(run: RunTool, read: (saved: string) => RuleTable[]): Promise<ToolRules[]> {
  const certain = await tablesOf(IPTABLES, run, read)
  return (certain.isInstalled ? certain : await tablesOf(PLAIN, run, read)).rules
}

/** Throws CommandError. */
export async function removeTables(run: RunTool, { tool, tables }: ToolRules): Promise<void> {
  await run([`${tool}-restore`, '--noflush', '--wait', LOCK_SECONDS], removalInput(tables))
}

/** For a log: "nat 23 chains, 3 jumps". */
export function tableTexts(tables: readonly RuleTable[]): readonly string[] {
  return tables.map(({ name, chains, jumps }) => `${name} ${chains.length} chains, ${jumps.length} jumps`)
}

async function tablesOf(
  tools: readonly string[],
  run: RunTool,
  read: (saved: string) => RuleTable[],
): Promise<{ readonly isInstalled: boolean; readonly rules: ToolRules[] }> {
  const rules: ToolRules[] = []
  let isInstalled = false
  for (const tool of tools) {
    const saved = await run([`${tool}-save`])
    isInstalled ||= saved !== undefined
    const tables = read(saved ?? '')
    if (tables.length > 0) rules.push({ tool, tables })
  }
  return { isInstalled, rules }
}
