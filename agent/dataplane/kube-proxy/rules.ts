// SPDX-License-Identifier: Apache-2.0
/** Which rules of a node are kube-proxy's, from texts of the netfilter tools, and what keeps connections when they go.
 * Layer: agent/dataplane (pure). */
import { formatAddr, isV4, type Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { FlowToService } from '../conntrack/client.ts'
import { isUsed, listedTables, tableRemovalInput, tablesNamed, type ListedTable, type RuleTable } from '../netfilter/rule-tables.ts'

/** What kube-proxy has ever called its chains, with iptables and with IPVS. KUBE-FIREWALL, KUBE-KUBELET-CANARY and
 * KUBE-IPTABLES-HINT are not among them: the kubelet keeps them too, and goes on needing them. Other programs use
 * the prefix as well (KUBE-NWPLCY-…, KUBE-ROUTER-…). */
const OWN_CHAIN =
  /^KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|NODE-PORT|FORWARD|POSTROUTING|MARK-MASQ|PROXY-FIREWALL|PROXY-CANARY|LOAD-BALANCER|SOURCE-RANGES-FIREWALL|IPVS-FILTER|IPVS-OUT-FILTER|(?:SVC|SVL|SEP|EXT|FW|XLB)-[A-Z0-9]+)$/
/** Other programs may use these two chains as a service: they mark a packet, and masquerade what is marked. The chains
 * stay as long as another program's rule refers to them. */
const MARK = 'KUBE-MARK-MASQ'
const MASQUERADE = 'KUBE-POSTROUTING'
const BUILT_IN = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'])
/** From the output of `iptables-save`; tables without anything of kube-proxy's are left out. */
export function proxyTables(saved: string): RuleTable[] {
  return listedTables(saved, { isChain: (chain) => OWN_CHAIN.test(chain) })
    .map(withoutBorrowed)
    .filter(isUsed)
}

function withoutBorrowed({ name, chains, foreign }: ListedTable): RuleTable {
  const isBorrowed = foreign.some(({ chain, target }) => target === MARK && !BUILT_IN.has(chain))
  const kept = isBorrowed ? [MARK, MASQUERADE] : []
  return {
    name,
    chains: chains.filter((chain) => !kept.includes(chain)),
    jumps: foreign.filter(({ target }) => !kept.includes(target)).map(({ line }) => line),
  }
}

/** Which of these addresses of services no rule is for: outputs of `iptables-save` and of `nft list table` in. What
 * kube-proxy makes first, chains without rules for any service, serves nothing yet. */
export function unservedAddresses(addresses: readonly Addr[], listings: readonly string[]): readonly Addr[] {
  const words = new Set(listings.flatMap((listing) => listing.split(/[^0-9a-f.:]+/)))
  return addresses.filter((addr) => !words.has(formatAddr(addr)))
}

/** From the output of `nft list tables`: families that have kube-proxy's table. */
export function proxyFamilies(listing: string): string[] {
  return tablesNamed('kube-proxy', listing)
}

/** The table is recognised by its name, which no other program uses. It is removed when the takeover ends. */
const TAKEOVER = 'netplane-takeover'

/** For `nft -f -`. Without a chain of type nat and a rule that looks at connections the kernel stops translating and
 * tracking at once, also for connections that are open: this keeps both going, in both families, and decides
 * nothing. May be run again. */
export function takeoverInput(): string {
  return ['ip', 'ip6']
    .flatMap((family) => [
      `add table ${family} ${TAKEOVER}`,
      `add chain ${family} ${TAKEOVER} translate { type nat hook postrouting priority 100 ; }`,
      `add chain ${family} ${TAKEOVER} track { type filter hook prerouting priority -150 ; }`,
      `flush chain ${family} ${TAKEOVER} track`,
      `add rule ${family} ${TAKEOVER} track ct state established continue`,
      '',
    ])
    .join('\n')
}

/** For `nft -f -`, from the output of `nft list tables`; empty when there is nothing of a takeover. */
export function takeoverEndInput(listing: string): string {
  return removalOf(TAKEOVER, listing)
}

/** By its name, as above. It is there while ports are redirected, and at most until the next agent starts. */
const PORTS = 'netplane-ports'

/** For `nft -f -`: TCP ports of this node, and which of its ports answer for them. It means new connections to any of
 * its addresses, from the network, from pods and from the node itself; those that are open stay where they are. */
export function redirectInput(ports: ReadonlyMap<number, number>): string {
  return ['ip', 'ip6']
    .flatMap((family) => [
      `add table ${family} ${PORTS}`,
      ...['prerouting', 'output'].flatMap((hook) => [
        `add chain ${family} ${PORTS} ${hook} { type nat hook ${hook} priority -110 ; }`,
        `flush chain ${family} ${PORTS} ${hook}`,
        ...[...ports].map(
          ([from, to]) =>
            `add rule ${family} ${PORTS} ${hook} tcp dport ${from} tcp flags & (fin|syn|rst|ack) == syn fib daddr type local dnat to :${to}`,
        ),
      ]),
      '',
    ])
    .join('\n')
}

/** For `nft -f -`, from the output of `nft list tables`; empty when nothing is redirected. */
export function redirectEndInput(listing: string): string {
  return removalOf(PORTS, listing)
}

/** By its name, as above. It is there while a kube-proxy is to run and flows of ours go on. */
const FLOWS = 'netplane-flows'
/** for which a flow is kept without an agent that says so again */
const KEPT_S = 30

/** For `nft -f -`: UDP flows from this node that rules of kube-proxy leave alone; all at once, in place of those
 * before. Empty for no flows. */
export function keptFlowsInput(flows: readonly FlowToService[]): string {
  if (flows.length === 0) return ''
  const [v4, v6] = [flows.filter(({ sent }) => isV4(sent.dst)), flows.filter(({ sent }) => !isV4(sent.dst))]
  return `${keptFlowsOf('ip', v4)}${keptFlowsOf('ip6', v6)}`
}

/** To translate a datagram to where it goes anyway is the kernel's last word on its translation. In nftables mode
 * kube-proxy refuses new flows that still go to a service behind its translation: up to there the first datagram goes
 * to its endpoint, as if it were translated. The connection still says where it was sent. */
function keptFlowsOf(family: 'ip' | 'ip6', flows: readonly FlowToService[]): string {
  const kind = family === 'ip' ? 'ipv4_addr' : 'ipv6_addr'
  const ends = (daddr: string): string => `${family} saddr . udp sport . ${daddr} . udp dport`
  const sent = ends(`${family} daddr`)
  const chains = [
    ['keep', 'type nat hook output priority -110', `dnat to ${sent} map @services`],
    ['hide', 'type filter hook output priority -99', `ct state new ${family} daddr set ${sent} map @endpoints`],
    ['show', 'type filter hook output priority 1', `ct state new ${family} daddr set ${ends(`ct original ${family} daddr`)} map @services`],
  ].flatMap(([name, chain, rule]) => [
    `add chain ${family} ${FLOWS} ${name} { ${chain} ; }`,
    `flush chain ${family} ${FLOWS} ${name}`,
    `add rule ${family} ${FLOWS} ${name} ${rule}`,
  ])
  const maps = (['services', 'endpoints'] as const).flatMap((name) => {
    const elements = new Map(flows.map((flow) => keptElement(flow, name === 'services' ? flow.sent.dst : flow.out.dst)))
    const text = [...elements].map((element) => element.join(' : ')).sort(compareText)
    return [
      `add map ${family} ${FLOWS} ${name} { type ${kind} . inet_service . ${kind} . inet_service : ${kind} ; timeout ${KEPT_S}s ; }`,
      `flush map ${family} ${FLOWS} ${name}`,
      ...(text.length === 0 ? [] : [`add element ${family} ${FLOWS} ${name} { ${text.join(', ')} }`]),
    ]
  })
  return [`add table ${family} ${FLOWS}`, ...maps, ...chains, ''].join('\n')
}

function keptElement({ sent: { src, sport, dst, dport } }: FlowToService, to: Addr): readonly [ends: string, to: string] {
  return [`${formatAddr(src)} . ${sport} . ${formatAddr(dst)} . ${dport}`, formatAddr(to)]
}

/** For `nft -f -`, from the output of `nft list tables`; empty when no flow is kept. */
export function keptFlowsEndInput(listing: string): string {
  return removalOf(FLOWS, listing)
}

function removalOf(name: string, listing: string): string {
  return tableRemovalInput(name, tablesNamed(name, listing))
}
