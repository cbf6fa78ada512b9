// SPDX-License-Identifier: Apache-2.0
/** What other programs' firewalls on this node drop that Netplane leaves to the kernel. Layer: agent/node. */
import { errorText } from '#lib/base/errors.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { iptablesRules } from './iptables.ts'
import { filterTables, nftRules } from './nft.ts'
import type { PodDevices } from './pod-devices.ts'
import { droppedBy, type Dropped, type Probe, type RuleSet } from './evaluate.ts'

export interface FirewallFinding {
  /** "packets of pods to processes of this node" */
  readonly what: string
  readonly families: readonly Probe['family'][]
  /** "nft inet firewalld" */
  readonly table: string
  readonly chain: string
  readonly by: Dropped['by']
  readonly remedy: string
}

export interface FirewallReport {
  readonly findings: readonly FirewallFinding[]
  /** tables that were looked into */
  readonly tables: readonly string[]
  /** what could not be, and why */
  readonly unread: readonly string[]
}

export interface FirewallOptions {
  readonly run: RunTool
  /** the names in /proc/net/ip_tables_names or ip6_tables_names: to list a table of the old kind makes it */
  readonly legacyTables: (file: 'ip_tables_names' | 'ip6_tables_names') => readonly string[]
  readonly pods: readonly PodDevices[]
  /** routed packets of pods pass the kernel's stack (before Linux 5.10) */
  readonly forwards: boolean
}

/** Other tables of netfilter are our own, or those of a proxy that drops only packets that no endpoint serves. */
const NOT_FIREWALLS = new Set(['netplane-takeover', 'kube-proxy'])
/** Chains and tables of the CNI plugin portmap: some pod has a host port. */
const HOST_PORTS = /"(CNI-HOSTPORT-DNAT|cni_hostport)"/
/** Of the kubelet, which pods that watch nodes ask. */
const KUBELET_PORT = 10250
const BOTH = ['ipv4', 'ipv6'] as const

/** Never throws: what cannot be read is in `unread`. A tool that is not installed has no rules. */
export async function findFirewalls(options: FirewallOptions): Promise<FirewallReport> {
  const unread: string[] = []
  const attempt = async <T>(what: string, read: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (thrown) {
      unread.push(`${what}: ${errorText(thrown)}`)
      return undefined
    }
  }
  const chains = (await attempt('nft', () => options.run(['nft', '-j', 'list', 'chains']))) ?? ''
  const saved = await readIptables(options, attempt)
  const sets = [...saved, ...(await readNft(options, { attempt, saved, chains }))]
  const asked = options.pods.flatMap((pods) => paths(pods, { forwards: options.forwards, hostPorts: HOST_PORTS.test(chains) }))
  const findings = asked.flatMap((path) => sets.flatMap((rules) => findingsIn(rules, path)))
  return { findings, tables: sets.map(({ name }) => name), unread }
}

type Attempt = <T>(what: string, read: () => Promise<T>) => Promise<T | undefined>

async function readIptables({ run, legacyTables }: FirewallOptions, attempt: Attempt): Promise<RuleSet[]> {
  const found: RuleSet[] = []
  for (const family of BOTH) {
    const name = family === 'ipv4' ? 'iptables' : 'ip6tables'
    const legacy = legacyTables(family === 'ipv4' ? 'ip_tables_names' : 'ip6_tables_names').includes('filter')
    const tools = legacy ? [`${name}-nft`, `${name}-legacy`] : [`${name}-nft`]
    for (const tool of tools) {
      const saved = await attempt(tool, () => run([`${tool}-save`, '-t', 'filter']))
      const rules = saved === undefined ? undefined : iptablesRules({ tool, family, saved })
      if (rules !== undefined) found.push(rules)
    }
  }
  return found
}

interface NftListing {
  readonly attempt: Attempt
  readonly saved: readonly RuleSet[]
  /** of all tables, as JSON */
  readonly chains: string
}

async function readNft({ run }: FirewallOptions, { attempt, saved, chains }: NftListing): Promise<RuleSet[]> {
  const found: RuleSet[] = []
  const bases = chains === '' ? [] : await attempt('nft', () => Promise.resolve().then(() => filterTables(chains)))
  for (const base of bases ?? []) {
    const { family, table } = base
    // iptables' own words for it are understood better
    const isIptables = table === 'filter' && saved.some(({ name }) => name === `${family === 'ip' ? 'iptables' : 'ip6tables'}-nft filter`)
    if (isIptables || NOT_FIREWALLS.has(table)) continue
    const rules = await attempt(`nft ${family} ${table}`, async () => {
      // terse: members of sets may be many
      const listing = await run(['nft', '-j', '-t', 'list', 'table', family, table])
      return listing === undefined ? undefined : nftRules(base, listing)
    })
    if (rules !== undefined) found.push(rules)
  }
  return found
}

interface Path {
  readonly what: string
  readonly probe: Omit<Probe, 'family'>
  readonly remedies: Readonly<Record<Program, string>>
}

type Program = 'firewalld' | 'ufw' | 'docker' | 'other'

/** What meets other programs' rules: the rest is redirected past them. */
function paths(
  { name: pod, prefix, routed }: PodDevices,
  { forwards, hostPorts }: { readonly forwards: boolean; readonly hostPorts: boolean },
): Path[] {
  const all = (sign: string): string => (prefix === undefined ? pod : `${prefix}${sign}`)
  const range = "the pods' range"
  const input: Path = {
    what: 'packets of pods to processes of this node (kubelet, pods on the host network)',
    probe: { hook: 'input', iif: pod, oif: undefined, port: KUBELET_PORT, translated: false },
    remedies: {
      firewalld: `firewall-cmd --permanent --zone=trusted --add-source=RANGE && firewall-cmd --reload, where RANGE is ${range}`,
      ufw: `ufw allow from RANGE, where RANGE is ${range}`,
      docker: `iptables -I INPUT -i ${all('+')} -j ACCEPT`,
      other: `accept what comes in by ${all('*')} before`,
    },
  }
  const output: Path = {
    what: "packets of this node's processes to its pods (probes of the kubelet)",
    probe: { hook: 'output', iif: undefined, oif: pod, port: 8080, translated: false },
    remedies: {
      firewalld: `accept what leaves by ${all('*')} in a policy of firewalld`,
      ufw: `ufw allow out on ${all('+')} to any`,
      docker: `iptables -I OUTPUT -o ${all('+')} -j ACCEPT`,
      other: `accept what leaves by ${all('*')} before`,
    },
  }
  const forwarded = (what: string, probe: Path['probe']): Path => ({
    what,
    probe,
    remedies: {
      firewalld: `firewall-cmd --permanent --zone=trusted --add-source=RANGE && firewall-cmd --reload, where RANGE is ${range}`,
      ufw: `ufw route allow from RANGE and ufw route allow to RANGE, where RANGE is ${range}`,
      docker: `iptables -I DOCKER-USER -i ${all('+')} -j ACCEPT; iptables -I DOCKER-USER -o ${all('+')} -j ACCEPT`,
      other: `accept what comes in or leaves by ${all('*')} before`,
    },
  })
  const out: Path['probe'] = { hook: 'forward', iif: pod, oif: 'eth0', port: 443, translated: false }
  const into: Path['probe'] = { hook: 'forward', iif: 'eth0', oif: pod, port: 8080, translated: false }
  const between = [forwarded('packets of pods to other machines', out), forwarded('packets of other machines to pods', into)]
  const translated = forwarded('packets to host ports of pods', { ...into, translated: true })
  return [input, output, ...(forwards || routed ? between : []), ...(hostPorts ? [translated] : [])]
}

function findingsIn(rules: RuleSet, { what, probe, remedies }: Path): FirewallFinding[] {
  const dropped = BOTH.flatMap((family) => {
    const by = droppedBy(rules, { ...probe, family })
    return by === undefined ? [] : [{ family, by }]
  })
  const [first] = dropped
  if (first === undefined) return []
  const families = dropped.map(({ family }) => family)
  return [{ what, families, table: rules.name, ...first.by, remedy: remedies[programOf(rules)] }]
}

function programOf({ name, chains }: RuleSet): Program {
  if (name === 'nft inet firewalld') return 'firewalld'
  const names = [...chains.keys()]
  if (names.some((chain) => chain.startsWith('ufw-') || chain.startsWith('ufw6-'))) return 'ufw'
  return names.some((chain) => chain.startsWith('DOCKER')) ? 'docker' : 'other'
}

/** "iptables-nft filter, chain FORWARD (its policy): drops …; remedy: …" */
export function findingText({ what, families, table, chain, by, remedy }: FirewallFinding): string {
  const which = families.length === BOTH.length ? '' : ` (${families.join()})`
  return `${table}, chain ${chain} (${by === 'policy' ? 'its policy' : 'a rule'}) drops ${what}${which}; remedy: ${remedy}`
}
