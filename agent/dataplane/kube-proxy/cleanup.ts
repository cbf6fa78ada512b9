// SPDX-License-Identifier: Apache-2.0
/** Finds what kube-proxy has left in the kernel's firewall, and takes it away when told; what is not its own stays
 * as it is. Layer: agent/dataplane. */
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { proxyFamilies, proxyTables, removalInput, takeoverEndInput, takeoverInput, type ProxyTable } from './rules.ts'

/** Rules of one tool: "iptables-nft" and its tables, or "nft" and its families. */
export type ProxyRules =
  | { readonly tool: string; readonly kind: 'iptables'; readonly tables: readonly ProxyTable[] }
  | { readonly tool: 'nft'; readonly kind: 'nft'; readonly families: readonly string[] }

/** A machine may have rules of both kinds, whichever of them "iptables" is. Listing loads no table that is not
 * there. */
const IPTABLES = ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']
/** Where no tool of a certain kind is installed. */
const PLAIN = ['iptables', 'ip6tables']
const runTool = netfilterTools({ timeoutMs: 60_000 })
/** of other programs that write rules, so that neither reads what the other is about to change */
const LOCK_SECONDS = '10'

/** In the caller's network namespace. Throws CommandError. */
export async function findKubeProxy(run: RunTool = runTool): Promise<ProxyRules[]> {
  const certain = await iptablesRules(IPTABLES, run)
  const iptables = certain.isInstalled ? certain.rules : (await iptablesRules(PLAIN, run)).rules
  const families = proxyFamilies((await run(['nft', 'list', 'tables'])) ?? '')
  return [...iptables, ...(families.length === 0 ? [] : [{ tool: 'nft', kind: 'nft', families } as const])]
}

/** Returns what was there and is gone. Connections that are open stay translated until {@link endTakeover}, where
 * `nft` is installed. A kube-proxy that still runs writes its rules again: look again. Throws CommandError. */
export async function removeKubeProxy(run: RunTool = runTool): Promise<ProxyRules[]> {
  const found = await findKubeProxy(run)
  if (found.length > 0) await run(['nft', '-f', '-'], takeoverInput())
  for (const rules of found) await remove(rules, run)
  return found
}

/** What was translated by kube-proxy's rules no longer is. True when there was anything to end; safe at any time.
 * Throws CommandError. */
export async function endTakeover(run: RunTool = runTool): Promise<boolean> {
  const input = takeoverEndInput((await run(['nft', 'list', 'tables'])) ?? '')
  if (input !== '') await run(['nft', '-f', '-'], input)
  return input !== ''
}

/** For a log: "iptables-nft: nat 23 chains, 3 jumps". */
export function proxyRulesText(rules: ProxyRules): string {
  const parts =
    rules.kind === 'nft'
      ? rules.families.map((family) => `table ${family} kube-proxy`)
      : rules.tables.map(({ name, chains, jumps }) => `${name} ${chains.length} chains, ${jumps.length} jumps`)
  return `${rules.tool}: ${parts.join('; ')}`
}

async function iptablesRules(
  tools: readonly string[],
  run: RunTool,
): Promise<{ readonly isInstalled: boolean; readonly rules: ProxyRules[] }> {
  const rules: ProxyRules[] = []
  let isInstalled = false
  for (const tool of tools) {
    const saved = await run([`${tool}-save`])
    isInstalled ||= saved !== undefined
    const tables = proxyTables(saved ?? '')
    if (tables.length > 0) rules.push({ tool, kind: 'iptables', tables })
  }
  return { isInstalled, rules }
}

async function remove(rules: ProxyRules, run: RunTool): Promise<void> {
  if (rules.kind === 'nft') await run(['nft', '-f', '-'], rules.families.map((family) => `delete table ${family} kube-proxy\n`).join(''))
  else await run([`${rules.tool}-restore`, '--noflush', '--wait', LOCK_SECONDS], removalInput(rules.tables))
}
