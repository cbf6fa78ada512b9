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
}

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

/** From the output of `nft list tables`: families that have a table of the name. */
export function tablesNamed(name: string, listing: string): string[] {
  return [...listing.matchAll(/^table (ip6?) (\S+)$/gm)].flatMap(([, family = '', table]) => (table === name ? [family] : []))
}

/** For `nft -f -`. */
export function tableRemovalInput(name: string, families: readonly string[]): string {
  return families.map((family) => `delete table ${family} ${name}\n`).join('')
}
