// SPDX-License-Identifier: Apache-2.0
/** Which rules of a node are kube-proxy's, and what takes them away: texts of the netfilter tools in, texts for them
 * out. Layer: agent/dataplane (pure). */

/** Of one table of one rule set of iptables. */
export interface ProxyTable {
  /** "nat" */
  readonly name: string
  /** chains that kube-proxy made, in the order of the listing */
  readonly chains: readonly string[]
  /** rules in chains of others that lead into these, as `iptables-save` writes them */
  readonly jumps: readonly string[]
}

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
/** The target may be followed by its options, but never by a quoted text: a comment is a match, and comes before it. */
const TARGET = /^-A (\S+)(?: .*?)? -[jg] ([^\s"]+)(?: [^"]*)?$/

/** From the output of `iptables-save`; tables without anything of kube-proxy's are left out. */
export function proxyTables(saved: string): ProxyTable[] {
  const sections = saved.split(/^(?=\*)/m).filter((section) => section.startsWith('*'))
  return sections.map(proxyTable).filter(({ chains, jumps }) => chains.length + jumps.length > 0)
}

function proxyTable(section: string): ProxyTable {
  const lines = section.split('\n')
  const name = lines[0]?.slice(1).trim() ?? ''
  const own = lines.flatMap((line) => /^:(\S+) - /.exec(line)?.[1] ?? []).filter((chain) => OWN_CHAIN.test(chain))
  const foreign = lines.flatMap((line) => {
    const [, chain = '', target = ''] = TARGET.exec(line) ?? []
    return own.includes(target) && !own.includes(chain) ? [{ line, chain, target }] : []
  })
  const isBorrowed = foreign.some(({ chain, target }) => target === MARK && !BUILT_IN.has(chain))
  const kept = isBorrowed ? [MARK, MASQUERADE] : []
  return {
    name,
    chains: own.filter((chain) => !kept.includes(chain)),
    jumps: foreign.filter(({ target }) => !kept.includes(target)).map(({ line }) => line),
  }
}

/** For `iptables-restore --noflush`: a chain that is declared is emptied, so that none is in another's way when they
 * go. */
export function removalInput(tables: readonly ProxyTable[]): string {
  return tables
    .map(({ name, chains, jumps }) =>
      [
        `*${name}`,
        ...chains.map((chain) => `:${chain} - [0:0]`),
        ...jumps.map((jump) => jump.replace(/^-A/, '-D')),
        ...chains.map((chain) => `-X ${chain}`),
        'COMMIT',
        '',
      ].join('\n'),
    )
    .join('')
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
  return tablesNamed(TAKEOVER, listing)
    .map((family) => `delete table ${family} ${TAKEOVER}\n`)
    .join('')
}

function tablesNamed(name: string, listing: string): string[] {
  return [...listing.matchAll(/^table (ip6?) (\S+)$/gm)].flatMap(([, family = '', table]) => (table === name ? [family] : []))
}
