// SPDX-License-Identifier: Apache-2.0
/** Finds what kube-proxy has left in the kernel's firewall, and takes it away when told; what is not its own stays
 * as it is. Layer: agent/dataplane. */
import type { Addr } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { findTables, removeTables, tableTexts, type ToolRules } from '../netfilter/iptables.ts'
import { tableRemovalInput } from '../netfilter/rule-tables.ts'
import { proxyFamilies, proxyTables, takeoverEndInput, takeoverInput, unservedAddresses } from './rules.ts'

/** Rules of one tool: "iptables-nft" and its tables, or "nft" and its families. */
export type ProxyRules =
  ({ readonly kind: 'iptables' } & ToolRules) | { readonly tool: 'nft'; readonly kind: 'nft'; readonly families: readonly string[] }

const runTool = netfilterTools({ timeoutMs: 60_000 })

/** In the caller's network namespace. Throws CommandError. */
export async function findKubeProxy(run: RunTool = runTool): Promise<ProxyRules[]> {
  const iptables = (await findTables(run, proxyTables)).map((rules) => ({ kind: 'iptables', ...rules }) as const)
  const families = proxyFamilies((await run(['nft', 'list', 'tables'])) ?? '')
  return [...iptables, ...(families.length === 0 ? [] : [{ tool: 'nft', kind: 'nft', families } as const])]
}

/** Which of these addresses of services have no rule in what {@link findKubeProxy} has found. Throws CommandError. */
export async function unservedOf(
  addresses: readonly Addr[],
  found: readonly ProxyRules[],
  run: RunTool = runTool,
): Promise<readonly Addr[]> {
  const commands = found.flatMap((rules) => {
    if (rules.kind === 'nft') return rules.families.map((family) => ['nft', 'list', 'table', family, 'kube-proxy'])
    const family = rules.tables.find(({ name }) => name === 'nat')?.nft
    return [family === undefined ? [`${rules.tool}-save`, '-t', 'nat'] : ['nft', 'list', 'table', family, 'nat']]
  })
  const listings: string[] = []
  for (const command of commands) listings.push((await run(command)) ?? '')
  return unservedAddresses(addresses, listings)
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
  const parts = rules.kind === 'nft' ? rules.families.map((family) => `table ${family} kube-proxy`) : tableTexts(rules.tables)
  return `${rules.tool}: ${parts.join('; ')}`
}

async function remove(rules: ProxyRules, run: RunTool): Promise<void> {
  if (rules.kind === 'nft') await run(['nft', '-f', '-'], tableRemovalInput('kube-proxy', rules.families))
  else await removeTables(run, rules)
}
