// SPDX-License-Identifier: Apache-2.0
/** A line of rules → the rows that hold it, but for those of identities. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import {
  DIMENSION_OWN,
  DIMENSION_PORT,
  DIMENSION_SOURCE_PORT,
  PORTS_OWN,
  PORTS_PAGE,
  PORTS_SMALL,
  PORTS_SOURCE,
  RULES_BEGIN,
  RULES_PER_BLOCK,
  RULE_WORDS,
  SMALL_CLASSES,
  SURE_NOT,
} from '#lib/base/bpf-constants.ts'
import { BitDraft, padded, wordAt, wordsFor } from './bits.ts'
import type { Bits } from './bits.ts'
import { NEVER } from '../rules/rule-list.ts'
import type { RuleList, ListedRule } from '../rules/rule-list.ts'
import { isFull, isSameRanges, rangesFor } from '../rules/protocol-ports.ts'
import type { ProtocolPorts, Ranges } from '../rules/protocol-ports.ts'
import { sideOf } from './peer-bitmaps.ts'
import type { SideTable } from './peer-bitmaps.ts'
import type { Dimension, PolicyRowOf, SetId, SetRow } from '../tables.ts'

export interface CompiledRuleset {
  readonly id: SetId
  /** but for those of rules */
  readonly rows: readonly SetRow[]
  readonly peer: SideTable
  /** undefined where no rule asks about this end's address */
  readonly own: SideTable | undefined
}

export function* compileRuleset(id: SetId, line: RuleList): Sliced<CompiledRuleset> {
  const blocks = blocksOf(line.rules)
  const peer = yield* sideOf(blocks.map((rules) => rules.map(({ rule }) => rule.peer)))
  const own = line.rules.some(({ rule }) => rule.own.length > 0)
    ? yield* sideOf(blocks.map((rules) => rules.map(({ rule }) => rule.own)))
    : undefined
  const pages = new Pages(id)
  const rows: SetRow[] = []
  let lists: PortLists | undefined
  for (const [block, rules] of blocks.entries()) {
    const unknown = peer.base[block] ?? ''
    // a rule of many peers and many ports fills many blocks, of which one is like the other
    if (lists === undefined || !isOf(lists, rules)) lists = yield* portLists(rules, pages)
    rows.push(...portRows({ id, block, blocks: blocks.length, rules, unknown, hasOwn: own !== undefined, lists }))
    if (own !== undefined) rows.push(bitsRow({ set: id, block, dimension: DIMENSION_OWN, class: 0 }, own.base[block] ?? ''))
  }
  return { id, rows: [...rows, ...pages.rows], peer, own }
}

function blocksOf(rules: readonly ListedRule[]): readonly (readonly ListedRule[])[] {
  return Array.from({ length: Math.ceil(rules.length / RULES_PER_BLOCK) }, (_, block) =>
    rules.slice(block * RULES_PER_BLOCK, (block + 1) * RULES_PER_BLOCK),
  )
}

export function bitsRow(key: PolicyRowOf<'bits'>['key'], word: Bits, sure = SURE_NOT): PolicyRowOf<'bits'> {
  return { table: 'bits', key, value: { word, sure } }
}

export function ruleRows(set: SetId, rules: readonly ListedRule[], ruleId: (name: string) => number): readonly SetRow[] {
  // np_rules is for all sets of the node
  return rules.flatMap(({ rule }, index): readonly SetRow[] =>
    !decides({ rule }) ? [] : [{ table: 'rules', key: { set, index }, value: { number: ruleId(rule.name) } }],
  )
}

/** What only fills a block up does not. */
export function decides({ rule }: Pick<ListedRule, 'rule'>): boolean {
  return rule !== NEVER.rule
}

interface Block {
  readonly id: SetId
  readonly block: number
  readonly blocks: number
  readonly rules: readonly ListedRule[]
  readonly unknown: Bits
  readonly hasOwn: boolean
  readonly lists: PortLists
}

/** What the ports of a block's rules come to. */
interface PortLists {
  /** by rule */
  readonly ports: readonly ProtocolPorts[]
  readonly sources: readonly ProtocolPorts[]
  readonly lists: readonly PortList[]
  readonly classes: Classes
  readonly sourceClasses: Classes
}

interface PortList {
  readonly proto: number
  /** 1: of source ports */
  readonly source: 0 | 1
  /** some rule asks about source ports */
  readonly hasSource: boolean
  /** 256 classes or pages */
  readonly at: Uint16Array
}

function isOf({ ports, sources }: PortLists, rules: readonly ListedRule[]): boolean {
  return (
    rules.length === ports.length &&
    rules.every(({ rule }, at) => isSamePlane(rule.ports, ports[at]) && isSamePlane(rule.source, sources[at]))
  )
}

function isSamePlane(plane: ProtocolPorts, other: ProtocolPorts | undefined): boolean {
  return plane === other || (plane.size === other?.size && [...plane].every(([proto, ranges]) => isSameList(ranges, other.get(proto))))
}

/** Rules that were one share their lists: only short ones are compared by what they hold. */
function isSameList(ranges: Ranges, other: Ranges | undefined): boolean {
  return ranges === other || (ranges.length <= 1 && other !== undefined && isSameRanges(ranges, other))
}

function* portLists(rules: readonly ListedRule[], pages: Pages): Sliced<PortLists> {
  const ports = rules.map(({ rule }) => rule.ports)
  const sources = rules.map(({ rule }) => rule.source)
  const words = wordsFor(rules.length)
  const classes = new Classes(words)
  const sourceClasses = new Classes(words)
  const lists: PortList[] = []
  for (const proto of protocolsOf([...ports, ...sources])) {
    const hasSource = sources.some((plane, at) => !isFull(rangesFor(plane, proto)) && rangesFor(ports[at] ?? plane, proto).length > 0)
    const listOf = (all: Classes, planes: readonly ProtocolPorts[]): Sliced<Uint16Array> =>
      all.listOf(
        planes.map((plane) => rangesFor(plane, proto)),
        pages,
      )
    lists.push({ proto, source: 0, hasSource, at: yield* listOf(classes, ports) })
    if (hasSource) lists.push({ proto, source: 1, hasSource, at: yield* listOf(sourceClasses, sources) })
  }
  return { ports, sources, lists, classes, sourceClasses }
}

function portRows({ id, block, blocks, rules, unknown, hasOwn, lists: { lists, classes, sourceClasses } }: Block): readonly SetRow[] {
  const words = wordsFor(rules.length)
  const isSmall = blocks === 1 && words === 1 && classes.all.length <= SMALL_CLASSES
  const kinds = [unknown, ...ruleBits(rules), ...classes.all.slice(0, isSmall ? SMALL_CLASSES : 1)]
  const cell = kinds.map((bits) => padded(bits, isSmall ? 1 : RULE_WORDS)).join('')
  const begins = wordsInUse(kinds[RULES_BEGIN] ?? '')
  const rows = lists.map(({ proto, source, hasSource, at }): SetRow => {
    const flags = (hasOwn ? PORTS_OWN : 0) | (hasSource ? PORTS_SOURCE : 0) | (isSmall ? PORTS_SMALL : 0)
    return { table: 'ports', key: { set: id, block, proto, source }, value: { blocks, words, flags, begins, cell, at } }
  })
  const classRows = (dimension: Dimension, { all }: Classes): readonly SetRow[] =>
    all.map((bits, number) => bitsRow({ set: id, block, dimension, class: number }, bits))
  return [...rows, ...(isSmall ? [] : classRows(DIMENSION_PORT, classes).slice(1)), ...classRows(DIMENSION_SOURCE_PORT, sourceClasses)]
}

/** RULES_ALLOW, RULES_PASS (both: those that leave open) and RULES_BEGIN. */
function ruleBits(rules: readonly ListedRule[]): readonly Bits[] {
  const words = wordsFor(rules.length)
  const bitsWhere = (is: (rule: ListedRule) => boolean): Bits => {
    const draft = new BitDraft(words)
    for (const [bit, rule] of rules.entries()) draft.put(bit, is(rule))
    return draft.toBits()
  }
  return [
    bitsWhere(({ rule: { action } }) => action === 'allow' || action === 'open'),
    bitsWhere(({ rule: { action } }) => action === 'pass' || action === 'open'),
    bitsWhere(({ begins }) => begins),
  ]
}

/** A bit for each word that is not zero. */
function wordsInUse(bits: Bits): number {
  let words = 0
  for (let word = 0; 8 * word < bits.length; word++) if (wordAt(bits, word) !== 0n) words |= 1 << word
  return words
}

/** 0 and those that some rule tells from the rest, sorted. */
function protocolsOf(planes: readonly ProtocolPorts[]): readonly number[] {
  const named = new Set([0])
  for (const plane of planes) for (const [proto, ranges] of plane) if (!isSameRanges(ranges, rangesFor(plane, 0))) named.add(proto)
  return [...named].sort((a, b) => a - b)
}

/** Classes of one dimension of a block, numbered in the order in which they come up. */
class Classes {
  /** by number */
  readonly all: Bits[] = []
  readonly #numbers = new Map<Bits, number>()
  readonly #words: number

  constructor(words: number) {
    this.#words = words
  }

  /** 256 classes or pages, of what each rule of the block takes. */
  *listOf(rules: readonly Ranges[], pages: Pages): Sliced<Uint16Array> {
    const runs = yield* this.#runs(rules)
    const list = new Uint16Array(256)
    let at = 0
    for (let high = 0; high < 256; high++) {
      const last = high * 256 + 255
      while ((runs[at + 1]?.from ?? 0x10000) <= high * 256) at++
      if ((runs[at + 1]?.from ?? 0x10000) > last) list[high] = runs[at]?.number ?? 0
      else list[high] = PORTS_PAGE | pages.numberOf(pageOf(runs, at, high * 256))
      yield
    }
    return list
  }

  /** Classes of all ports, where they change. */
  *#runs(rules: readonly Ranges[]): Sliced<readonly Run[]> {
    const turns = new Map<number, [bits: RuleBits, value: boolean][]>([[0, []]])
    const turn = (port: number, bits: RuleBits, value: boolean): void => {
      const list = turns.get(port)
      if (list === undefined) turns.set(port, [[bits, value]])
      else list.push([bits, value])
    }
    for (const [ranges, bits] of this.#alike(rules))
      for (const [from, to] of ranges) {
        turn(from, bits, true)
        if (to < 0xffff) turn(to + 1, bits, false)
      }
    const draft = new BitDraft(this.#words)
    const runs: Run[] = []
    for (const from of [...turns.keys()].sort((a, b) => a - b)) {
      for (const [bits, value] of turns.get(from) ?? [])
        if (typeof bits === 'number') draft.put(bits, value)
        else draft.putAll(bits, value)
      runs.push({ from, number: this.#numberOf(draft.toBits()) })
      yield
    }
    return runs
  }

  /** Rules with the same list of ranges, as all peers of one rule have: they turn together, however long it is. */
  #alike(rules: readonly Ranges[]): ReadonlyMap<Ranges, RuleBits> {
    const alike = new Map<Ranges, RuleBits>()
    for (const [bit, ranges] of rules.entries()) {
      const known = alike.get(ranges)
      if (known === undefined) {
        alike.set(ranges, bit)
        continue
      }
      const mask = typeof known === 'number' ? new BitDraft(this.#words) : known
      if (typeof known === 'number') mask.put(known, true)
      mask.put(bit, true)
      alike.set(ranges, mask)
    }
    return alike
  }

  #numberOf(bits: Bits): number {
    const known = this.#numbers.get(bits)
    if (known !== undefined) return known
    const number = this.all.length
    this.#numbers.set(bits, number)
    this.all.push(bits)
    return number
  }
}

/** One rule of a block by its number, or several. */
type RuleBits = number | BitDraft

interface Run {
  readonly from: number
  readonly number: number
}

/** Classes of 256 ports from `first` on, which is in the run `at`. */
function pageOf(runs: readonly Run[], at: number, first: number): Uint16Array {
  const page = new Uint16Array(256)
  let run = at
  for (let low = 0; low < 256; low++) {
    while ((runs[run + 1]?.from ?? 0x10000) <= first + low) run++
    page[low] = runs[run]?.number ?? 0
  }
  return page
}

/** A set's pages, equal ones once. */
class Pages {
  readonly rows: SetRow[] = []
  readonly #set: SetId
  readonly #numbers = new Map<string, number>()

  constructor(set: SetId) {
    this.#set = set
  }

  numberOf(page: Uint16Array): number {
    const text = page.join()
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    const number = this.#numbers.size
    this.#numbers.set(text, number)
    this.rows.push({ table: 'pages', key: { set: this.#set, page: number }, value: { class: page } })
    return number
  }
}
