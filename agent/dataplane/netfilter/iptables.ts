// SPDX-License-Identifier: Apache-2.0
/** Finds what one program has in the kernel's firewall by iptables, and takes it away. Layer: agent/dataplane. */
import { ConfigError } from '#lib/base/errors.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { nftRemovalInput, removalInput, savedForm, unshownTables, type NftFamily, type RuleTable } from './rule-tables.ts'

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

type ReadTables = (saved: string) => RuleTable[]

/** `read`: the output of `iptables-save`. What that cannot show is read by nft. In the caller's network namespace.
 * Throws CommandError, and ConfigError where a table can be read by no tool that is installed. */
export async function findTables(run: RunTool, read: ReadTables): Promise<ToolRules[]> {
  const certain = await tablesOf(IPTABLES, run, read)
  return (certain.isInstalled ? certain : await tablesOf(PLAIN, run, read)).rules
}

/** Throws CommandError. */
export async function removeTables(run: RunTool, { tool, tables }: ToolRules): Promise<void> {
  const [shown, unshown] = [tables.filter(({ nft }) => nft === undefined), tables.filter(({ nft }) => nft !== undefined)]
  if (shown.length > 0) await run([`${tool}-restore`, '--noflush', '--wait', LOCK_SECONDS], removalInput(shown))
  if (unshown.length > 0) await run(['nft', '-f', '-'], nftRemovalInput(unshown))
}

/** For a log: "nat 23 chains, 3 jumps". */
export function tableTexts(tables: readonly RuleTable[]): readonly string[] {
  return tables.map(({ name, chains, jumps }) => `${name} ${chains.length} chains, ${jumps.length} jumps`)
}

async function tablesOf(
  tools: readonly string[],
  run: RunTool,
  read: ReadTables,
): Promise<{ readonly isInstalled: boolean; readonly rules: ToolRules[] }> {
  const rules: ToolRules[] = []
  let isInstalled = false
  for (const tool of tools) {
    const saved = await run([`${tool}-save`])
    isInstalled ||= saved !== undefined
    const tables = [...read(saved ?? ''), ...(await unshownOf(tool, saved ?? '', { run, read }))]
    if (tables.length > 0) rules.push({ tool, tables })
  }
  return { isInstalled, rules }
}

async function unshownOf(
  tool: string,
  saved: string,
  { run, read }: { readonly run: RunTool; readonly read: ReadTables },
): Promise<RuleTable[]> {
  const nft: NftFamily = tool.startsWith('ip6') ? 'ip6' : 'ip'
  const tables: RuleTable[] = []
  for (const name of unshownTables(saved)) {
    // terse: members of sets may be many
    const listing = await run(['nft', '-a', '-t', 'list', 'table', nft, name])
    if (listing === undefined)
      throw new ConfigError(`${tool}-save`, `cannot show table ${name}, which has rules of nft, and nft is not installed`)
    tables.push(...read(savedForm(name, listing)).map((table) => ({ ...table, nft })))
  }
  return tables
}
