// SPDX-License-Identifier: Apache-2.0
/** What of other programs is on the node that would be in the way: kube-proxy, data planes, plugins, firewalls, marks.
 * Layer: agent. */
import { join } from 'node:path'
import { NetlinkSocket } from '#native'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { placeOnNode } from '#lib/base/os/node-path.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { chainedConflist, CONFLISTS, namesOfOthers, oldLists } from '../cni/install/conflist.ts'
import { defaultConfig } from '../config/config.ts'
import { isCgroup2 } from '../dataplane/attach/cgroup.ts'
import { findKubeProxy, type ProxyRules } from '../dataplane/kube-proxy/cleanup.ts'
import { unshownTables } from '../dataplane/netfilter/rule-tables.ts'
import { probeFeatures } from '../dataplane/programs/kernel-features.ts'
import { AF_INET, AF_INET6 } from '../interfaces/netlink/addr.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import { netfilterTools } from '../interfaces/netlink/nf-tables.ts'
import { decodeMarkRule, encodeRuleDump, RTM_GETRULE } from '../interfaces/netlink/rule.ts'
import { findFirewalls } from '../node/firewall/detect.ts'
import { legacyTables } from '../node/firewall/legacy.ts'
import { bitsText, collisions, iptablesMarks, nftMarks, OUR_MARK_BITS, usedBits, type MarkUse } from '../node/firewall/marks.ts'
import { ownDevices } from '../node/firewall/pod-devices.ts'
import { decideHere } from './devices.ts'
import type { PreflightOptions } from './options.ts'
import type { Probed } from './probed.ts'
import { cgroupPrograms, devicePrograms, pinFindings, programFindings } from './programs.ts'

const TOOL_MS = 5000

type OthersOptions = Pick<PreflightOptions, 'addresses' | 'cni' | 'confDir' | 'nodeRoot' | 'sysFs'>

export async function probeOthers(options: OthersOptions, run: RunTool = netfilterTools({ timeoutMs: TOOL_MS })): Promise<Probed> {
  const unread: Finding[] = []
  const attempt = async <T>(what: string, read: () => Promise<T> | T, otherwise: T): Promise<T> => {
    try {
      return await read()
    } catch (thrown) {
      unread.push(finding('unread', what, errorText(thrown)))
      return otherwise
    }
  }
  const proxies = await attempt("kube-proxy's rules", () => findKubeProxy(run), [])
  const devices = decideHere(options).flatMap(({ iface, use }) => (use === 'host' ? [iface] : []))
  const programs = await attempt('programs', () => [...devicePrograms(devices), ...cgroupPrograms(cgroupIn(options.sysFs))], [])
  const findings = [
    ...proxyFindings(proxies),
    ...programFindings(programs),
    ...(await attempt('pins', () => pinFindings(join(options.sysFs, 'bpf')), [])),
    ...(await attempt('network configurations', () => conflistFindings(options), [])),
    ...(await firewallFindings(run)),
    ...markFindings(await attempt('packet marks', () => markUses(run), [])),
  ]
  return { findings: [...findings, ...unread], facts: { proxy: proxyModes(proxies).join('+') || 'none' } }
}

const IPVS_CHAIN = /^KUBE-(IPVS-FILTER|IPVS-OUT-FILTER|LOAD-BALANCER|NODE-PORT)$/

/** By the rules that are there. */
export function proxyModes(rules: readonly ProxyRules[]): string[] {
  const isIpvs = (one: ProxyRules): boolean =>
    one.kind === 'iptables' && one.tables.some(({ chains }) => chains.some((chain) => IPVS_CHAIN.test(chain)))
  const modes = rules.map((one) => (one.kind === 'nft' ? 'nftables' : isIpvs(one) ? 'ipvs' : 'iptables'))
  return [...new Set(modes)].sort()
}

function proxyFindings(rules: readonly ProxyRules[]): Finding[] {
  const modes = proxyModes(rules)
  return [
    ...(modes.includes('ipvs') ? [finding('proxy-ipvs-rules')] : []),
    ...(modes.length > 1 ? [finding('proxy-modes', modes.join(', '))] : []),
  ]
}

/** Where programs of all pods are found: the only hierarchy, or the one beside those of the old kind. */
function cgroupIn(sysFs: string): string | undefined {
  const places = [join(sysFs, 'cgroup'), join(sysFs, 'cgroup/unified')]
  return places.find(isCgroup2)
}

/** Another plugin's are told where pods are ours; where we are chained to one, that it can be. */
export function conflistFindings({ cni, confDir, nodeRoot }: Pick<PreflightOptions, 'cni' | 'confDir' | 'nodeRoot'>): Finding[] {
  if (confDir === undefined || cni === 'None') return []
  const place = placeOnNode(nodeRoot, confDir)
  const folder = place.isWhole ? place.found : join(nodeRoot, confDir)
  if (cni === 'Netplane' || cni === 'Local')
    return lastingLists(folder).map((file) => finding(file < CONFLISTS.own ? 'cni-list-before' : 'cni-list-after', file))
  try {
    return chainedConflist(folder, '') === undefined ? [finding('cni-list-missing', confDir)] : []
  } catch (thrown) {
    if (thrown instanceof ConfigError) return [finding('cni-list-unusable', thrown.message)]
    throw thrown
  }
}

/** The agent takes those of its older versions away. */
function lastingLists(folder: string): readonly string[] {
  const old = oldLists(folder)
  return namesOfOthers(folder).filter((name) => !old.includes(name))
}

async function firewallFindings(run: RunTool): Promise<Finding[]> {
  const pods = [ownDevices(defaultConfig.compile.interfacePrefix)]
  const { findings, unread } = await findFirewalls({ run, legacyTables, pods, forwards: probeFeatures().redirect_neigh !== 'yes' })
  return [
    ...findings.map(({ what, table, chain, by, remedy }) =>
      finding('firewall-drops', `${by === 'policy' ? 'the policy' : 'a rule'} of ${table}, chain ${chain}`, what, remedy),
    ),
    ...unread.map((reason) => finding('unread', "other programs' firewalls", reason)),
  ]
}

function markFindings(uses: readonly MarkUse[]): Finding[] {
  return collisions(uses).map(({ where, bits }) => finding('mark-bits', where, bitsText(bits), bitsText(bits & OUR_MARK_BITS)))
}

const IPTABLES = ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']
/** Whose tables in nftables are told of by the tool itself, whose words for them are understood better. */
const NFT_TOOLS: Readonly<Record<string, string>> = { ip: 'iptables-nft', ip6: 'ip6tables-nft' }
const IPTABLES_TABLES = new Set(['filter', 'nat', 'mangle', 'raw', 'security'])

async function markUses(run: RunTool): Promise<MarkUse[]> {
  const uses: MarkUse[] = []
  const told = new Set<string>()
  const unshown = new Set<string>()
  for (const tool of IPTABLES) {
    const saved = await run([`${tool}-save`])
    if (saved !== undefined) told.add(tool)
    for (const table of unshownTables(saved ?? '')) unshown.add(`${tool} ${table}`)
    uses.push(...iptablesMarks(tool, saved ?? ''))
  }
  // terse: members of sets may be many
  const ruleset = await run(['nft', '-j', '-t', 'list', 'ruleset'])
  const isOther = (family: string, table: string): boolean => {
    const tool = NFT_TOOLS[family] ?? ''
    return table.startsWith('netplane-') || (IPTABLES_TABLES.has(table) && told.has(tool) && !unshown.has(`${tool} ${table}`))
  }
  if (ruleset !== undefined && ruleset !== '') uses.push(...nftMarks(ruleset, isOther))
  return [...uses, ...ruleUses()]
}

function ruleUses(): MarkUse[] {
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  try {
    const exchange = new NetlinkExchange(socket)
    return [AF_INET, AF_INET6].flatMap((family) =>
      exchange.dump({ what: 'list rules', type: RTM_GETRULE, payload: encodeRuleDump(family) }).flatMap(({ payload }) => {
        const rule = decodeMarkRule(payload)
        if (rule === undefined) return []
        return [{ where: `ip ${family === AF_INET6 ? '-6 ' : ''}rule ${rule.priority}`, bits: usedBits(rule.mark, rule.mask) }]
      }),
    )
  } finally {
    socket.close()
  }
}
