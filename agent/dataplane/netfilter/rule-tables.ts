// SPDX-License-Identifier: Apache-2.0
/** Rules of one program among those of others, and what takes them away: texts of the netfilter tools in, texts for
 * them out. Layer: agent/dataplane (pure). */

/** Of one table of one rule set of iptables. */
export interface RuleTable {
  /** "nat" */
  readonly name: string
  /** chains that the program made, in the order of the listing */
  readonly chains: readonly string[]
  /** rules of the program in chains of others, as `iptables-save` writes them */
  readonly jumps: readonly string[]
  /** the family in nftables of a table that iptables cannot show, of which {@link savedForm} tells */
  readonly nft?: NftFamily
}

export type NftFamily = 'ip' | 'ip6'

/** What is the program's. A rule of another chain is, too, that leads into a chain of it. */
export interface RuleOwner {
  readonly isChain: (name: string) => boolean
  readonly isRule?: (line: string) => boolean
}

/** A rule in a chain of others. */
export interface ForeignRule {
  readonly line: string
  readonly chain: string
  readonly target: string
}

/** The target may be followed by its options, but never by a quoted text: a comment is a match, and comes before it. */
const TARGET = /^-A (\S+)(?: .*?)? -[jg] ([^\s"]+)(?: [^"]*)?$/

/** A table of that listing. */
export interface ListedTable {
  readonly name: string
  readonly chains: readonly string[]
  /** of the program, in chains of others */
  readonly foreign: readonly ForeignRule[]
}

/** From the output of `iptables-save`; tables without anything of the program's are left out. */
export function ruleTables(saved: string, owner: RuleOwner): RuleTable[] {
  const read = listedTables(saved, owner).map(({ name, chains, foreign }) => ({ name, chains, jumps: foreign.map(({ line }) => line) }))
  return read.filter(isUsed)
}

export function isUsed({ chains, jumps }: RuleTable): boolean {
  return chains.length + jumps.length > 0
}

/** All tables of that output. */
export function listedTables(saved: string, owner: RuleOwner): ListedTable[] {
  const sections = saved.split(/^(?=\*)/m).filter((section) => section.startsWith('*'))
  return sections.map((section) => listedTable(section, owner))
}

function listedTable(section: string, { isChain, isRule = () => false }: RuleOwner): ListedTable {
  const lines = section.split('\n')
  const name = lines[0]?.slice(1).trim() ?? ''
  const chains = lines.flatMap((line) => /^:(\S+) - /.exec(line)?.[1] ?? []).filter(isChain)
  const foreign = lines.flatMap((line) => {
    const [, chain = '', target = ''] = TARGET.exec(line) ?? []
    return chain !== '' && !chains.includes(chain) && (chains.includes(target) || isRule(line)) ? [{ line, chain, target }] : []
  })
  return { name, chains, foreign }
}

/** For `iptables-restore --noflush`: a chain that is declared is emptied, so that none is in another's way when they
 * go. */
export function removalInput(tables: readonly RuleTable[]): string {
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

/** From the output of `iptables-nft-save`: tables that it does not show, for they have a rule that iptables has no
 * words for, as nft's `masquerade`. All other rules of the table are there. */
export function unshownTables(saved: string): string[] {
  return [...saved.matchAll(/^# Table [`'](\S+)' is incompatible/gm)].map(([, name = '']) => name)
}

/** The output of `nft -a list table` in the form of `iptables-save`, as far as it says which chain leads to which. A
 * comment of each rule is its handle. */
export function savedForm(name: string, listing: string): string {
  const [declared, rules]: [string[], string[]] = [[], []]
  let chain = ''
  for (const line of listing.split('\n')) {
    const [, begun] = /^\tchain (\S+) \{/.exec(line) ?? []
    if (begun !== undefined) {
      chain = begun
      declared.push(`:${chain} - [0:0]`)
    } else if (/^\t\ttype \S+ hook /.test(line)) declared[declared.length - 1] = `:${chain} ACCEPT [0:0]`
    else if (line === '\t}') chain = ''
    else if (chain !== '') rules.push(...savedRule(chain, line))
  }
  return [`*${name}`, ...declared, ...rules, 'COMMIT', ''].join('\n')
}

/** A comment may say anything. */
function savedRule(chain: string, line: string): readonly string[] {
  const [, handle] = / # handle (\d+)$/.exec(line) ?? []
  if (handle === undefined) return []
  const [, comment] = /\bcomment "([^"]*)"/.exec(line) ?? []
  const [, verdict, target] = /\b(jump|goto) (\S+)(?: |$)/.exec(line.replaceAll(/"[^"]*"/g, '""')) ?? []
  const words = target === undefined ? '-j NFT' : `${verdict === 'goto' ? '-g' : '-j'} ${target}`
  const said = comment === undefined ? '' : `-m comment --comment "${comment}" `
  return [`-A ${chain} ${said}-m comment --comment "handle ${handle}" ${words}`]
}

/** For `nft -f -`: all of it at once, or nothing. Chains are emptied first, so that none is in another's way. */
export function nftRemovalInput(tables: readonly RuleTable[]): string {
  return tables
    .flatMap(({ name, nft = 'ip', chains, jumps }) => [
      ...jumps.map((jump) => {
        const [, chain = '', handle = ''] = /^-A (\S+) .*"handle (\d+)"/.exec(jump) ?? []
        return `delete rule ${nft} ${name} ${chain} handle ${handle}`
      }),
      ...chains.map((chain) => `flush chain ${nft} ${name} ${chain}`),
      ...chains.map((chain) => `delete chain ${nft} ${name} ${chain}`),
      '',
    ])
    .join('\n')
}

/** From the output of `nft list tables`: families that have a table of the name. */
export function tablesNamed(name: string, listing: string): string[] {
  return [...listing.matchAll(/^table (ip6?) (\S+)$/gm)].flatMap(([, family = '', table]) => (table === name ? [family] : []))
}

/** For `nft -f -`. */
export function tableRemovalInput(name: string, families: readonly string[]): string {
  return families.map((family) => `delete table ${family} ${name}\n`).join('')
}
