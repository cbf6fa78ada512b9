// SPDX-License-Identifier: Apache-2.0
/** What the programs do with a flow's first packet, lookup by lookup: policy/evaluate.h in TypeScript. Layer: agent. */
import {
  DIMENSION_OWN,
  DIMENSION_PEER,
  DIMENSION_PORT,
  DIMENSION_SOURCE_PORT,
  PORTS_OWN,
  PORTS_PAGE,
  PORTS_SMALL,
  PORTS_SOURCE,
  RULES_ALLOW,
  RULES_BEGIN,
  RULES_CLASS,
  RULES_UNKNOWN,
  RULES_PASS,
  RULES_PER_BLOCK,
  SMALL_CLASSES,
} from '#lib/base/bpf-constants.ts'
import type { Addr } from '#lib/base/ip.ts'
import { wordAt } from '#agent/compile/policy/rulesets/bits.ts'
import type { Bits } from '#agent/compile/policy/rulesets/bits.ts'
import { MOST_BLOCKS } from '#agent/compile/policy/rules/rule-list.ts'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { PolicyRowOf, SetId } from '#agent/compile/policy/tables.ts'
import { bitsInRow, type PolicyLookup } from './table-rows.ts'

/** A flow's first packet as one of its ends sees it. */
export interface PolicyQuery {
  readonly set: SetId
  /** identities */
  readonly peer: number
  readonly own: number
  readonly proto: number
  /** destination port, or ICMP type * 256 + code */
  readonly port: number
  readonly sourcePort: number
}

export interface PolicyVerdict {
  /** `open`: no verdict, the next stage decides */
  readonly action: 'allow' | 'deny' | 'open'
  /** number of the rule that decided; undefined where none was asked, or none holds */
  readonly rule: number | undefined
  /** of the rules that passed */
  readonly passed: readonly number[]
}

/** The address's identity in policy. */
export function identityOf(tables: PolicyLookup, addr: Addr): number {
  const known = tables.end(addr)?.identity ?? 0
  return known === 0 ? (tables.net(addr) ?? 0) : known
}

export function walk(tables: PolicyLookup, query: PolicyQuery): PolicyVerdict {
  if (query.set === NO_SET) return { action: 'allow', rule: undefined, passed: [] }
  const walker = new Walker((index) => tables.rule(query.set, index)?.number)
  for (let block = 0; block < MOST_BLOCKS; block++) {
    const ports = portsOf(tables, query, { block, source: 0 })
    if (ports === undefined) break
    const met = metBy(tables, query, { block, ports })
    if (met === undefined) break
    for (let word = 0; word < ports.words; word++) {
      const found = walker.word(ports, { word, met: met(word), first: block * RULES_PER_BLOCK + word * 64 })
      if (found !== undefined) return { ...found, passed: walker.passed }
    }
    if (block + 1 >= ports.blocks) break
  }
  return { action: 'deny', rule: undefined, passed: walker.passed }
}

interface Word {
  readonly word: number
  /** rules whose conditions the flow meets */
  readonly met: bigint
  /** number of the word's first rule */
  readonly first: number
}

/** On the way through a set, word by word. */
class Walker {
  readonly passed: number[] = []
  readonly #numberOf: (index: number) => number | undefined
  #seeks = false

  constructor(numberOf: (index: number) => number | undefined) {
    this.#numberOf = numberOf
  }

  word(ports: Ports, { word, met, first }: Word): Pick<PolicyVerdict, 'action' | 'rule'> | undefined {
    const [allow = 0n, pass = 0n, begin = 0n] = [RULES_ALLOW, RULES_PASS, RULES_BEGIN].map((kind) => wordAt(bitsInRow(ports, kind), word))
    let from = ALL
    for (;;) {
      if (this.#seeks) {
        const next = lowest(begin & from)
        if (next === 0n) return undefined
        from = above(next) | next
        this.#seeks = false
      }
      const bit = lowest(met & from)
      if (bit === 0n) return undefined
      const rule = this.#numberOf(first + bit.toString(2).length - 1)
      const [allows, passes] = [(allow & bit) !== 0n, (pass & bit) !== 0n]
      if (allows || !passes) return { action: allows ? (passes ? 'open' : 'allow') : 'deny', rule }
      if (rule !== undefined) this.passed.push(rule)
      this.#seeks = true
      from = above(bit)
    }
  }
}

const ALL = (1n << 64n) - 1n

function lowest(word: bigint): bigint {
  return word & -word
}

function above(bit: bigint): bigint {
  return ALL & ~((bit << 1n) - 1n)
}

type Ports = PolicyRowOf<'ports'>['value']

interface BlockOf {
  readonly block: number
  readonly ports: Ports
}

/** By word: rules of the block whose conditions the flow meets. Undefined where a row is missing. */
function metBy(tables: PolicyLookup, query: PolicyQuery, of: BlockOf): ((word: number) => bigint) | undefined {
  const { block, ports } = of
  const key = { set: query.set, block }
  const isSmall = (ports.flags & PORTS_SMALL) !== 0
  const number = classOf(tables, query, { ports, port: query.port })
  const peer = query.peer === 0 ? undefined : tables.bits({ ...key, dimension: DIMENSION_PEER, class: query.peer })?.word
  const others: (Bits | undefined)[] = []
  if (number === 0 || isSmall) others.push(number < SMALL_CLASSES ? bitsInRow(ports, RULES_CLASS + number) : undefined)
  else others.push(tables.bits({ ...key, dimension: DIMENSION_PORT, class: number })?.word)
  if ((ports.flags & PORTS_OWN) !== 0) others.push(ownBits(tables, query, block))
  if ((ports.flags & PORTS_SOURCE) !== 0) others.push(sourceBits(tables, query, block))
  const bits = others.filter((one) => one !== undefined)
  if (bits.length < others.length) return undefined
  const first = peer ?? bitsInRow(ports, RULES_UNKNOWN)
  return (word) => bits.reduce((met, one) => met & wordAt(one, word), wordAt(first, word))
}

function ownBits(tables: PolicyLookup, query: PolicyQuery, block: number): Bits | undefined {
  const key = { set: query.set, block, dimension: DIMENSION_OWN } as const
  return (tables.bits({ ...key, class: query.own }) ?? tables.bits({ ...key, class: 0 }))?.word
}

function sourceBits(tables: PolicyLookup, query: PolicyQuery, block: number): Bits | undefined {
  const ports = portsOf(tables, query, { block, source: 1 })
  if (ports === undefined) return undefined
  const number = classOf(tables, query, { ports, port: query.sourcePort })
  return tables.bits({ set: query.set, block, dimension: DIMENSION_SOURCE_PORT, class: number })?.word
}

function classOf(tables: PolicyLookup, { set }: PolicyQuery, { ports, port }: { readonly ports: Ports; readonly port: number }): number {
  const at = ports.at[port >> 8] ?? 0
  return (at & PORTS_PAGE) === 0 ? at : (tables.page(set, at & ~PORTS_PAGE)?.class[port & 0xff] ?? -1)
}

function portsOf(tables: PolicyLookup, { set, proto }: PolicyQuery, of: { readonly block: number; readonly source: 0 | 1 }) {
  return tables.ports({ set, proto, ...of }) ?? tables.ports({ set, proto: 0, ...of })
}
