// SPDX-License-Identifier: Apache-2.0
/** Wanted rows of policy as JSON that people read: rules by name, bits as numbers of rules, classes by port.
 * Layer: agent. */
import {
  DIMENSION_OWN,
  DIMENSION_PEER,
  DIMENSION_PORT,
  DIMENSION_SOURCE_PORT,
  PORTS_PAGE,
  PORTS_SMALL,
  RULES_ALLOW,
  RULES_CLASS,
  RULES_UNKNOWN,
  RULES_PASS,
  RULES_PER_BLOCK,
} from '#lib/base/bpf-constants.ts'
import { formatAddr, formatCidr, protocolText } from '#lib/base/ip.ts'
import { wordAt, type Bits } from '../compile/policy/rulesets/bits.ts'
import type { PolicyRow, PolicyRowOf, PolicyStep, SetId } from '../compile/policy/tables.ts'
import { bitsInRow, PolicyTables } from '../policy/table-rows.ts'

export interface PolicyText {
  readonly nets: Record<string, number>
  readonly endpoints: Record<string, unknown>
  readonly hosts: Record<string, unknown>
  readonly sets: Record<SetId, SetText>
}

interface SetText {
  /** "allow NetworkPolicy/default/web ingress 0", in order */
  readonly rules: string[]
  /** "peer 3000000007": numbers of rules whose condition on that end this identity meets; "peer unknown": the same for
   * an address without a row */
  readonly classes: Record<string, string>
  /** by protocol: ranges of ports, and the rules whose condition they meet */
  readonly ports: Record<string, string>
}

const DIMENSIONS = new Map<number, string>([
  [DIMENSION_PEER, 'peer'],
  [DIMENSION_OWN, 'own'],
])

/** Of a whole. `ruleNames`: by number. */
export function formatPolicy(steps: readonly PolicyStep[], ruleNames: ReadonlyMap<number, string>): PolicyText {
  const tables = new PolicyTables()
  tables.apply(steps)
  const text: PolicyText = { nets: {}, endpoints: {}, hosts: {}, sets: {} }
  for (const key of [...tables.rows.keys()].sort()) {
    const row = tables.rows.get(key)
    if (row !== undefined) put(text, row, { tables, ruleNames })
  }
  return text
}

interface Known {
  readonly tables: PolicyTables
  readonly ruleNames: ReadonlyMap<number, string>
}

function put(text: PolicyText, row: PolicyRow, known: Known): void {
  switch (row.table) {
    case 'nets':
      text.nets[formatCidr(row.key.cidr)] = row.value.identity
      return
    case 'ends':
      text.endpoints[formatAddr(row.key.addr)] = row.value
      return
    case 'hosts':
      text.hosts[row.key.endpoint] = { ...row.value, addrs: row.value.addrs.map(formatAddr) }
      return
    case 'pages':
      return
    default:
      putInSet((text.sets[row.key.set] ??= { rules: [], classes: {}, ports: {} }), row, known)
  }
}

function putInSet(set: SetText, row: PolicyRowOf<'rules' | 'bits' | 'ports'>, { tables, ruleNames }: Known): void {
  switch (row.table) {
    case 'rules': {
      const { number } = row.value
      set.rules[row.key.index] = `${actionOf(row, tables)} ${ruleNames.get(number) ?? String(number)}`
      return
    }
    case 'bits': {
      const { dimension, class: number, block } = row.key
      if (!DIMENSIONS.has(dimension)) return
      set.classes[`${DIMENSIONS.get(dimension) ?? String(dimension)} ${number}${blockText(block)}`] = bitsText(row.value.word, block)
      return
    }
    case 'ports': {
      const { proto, source, block } = row.key
      const name = proto === 0 ? 'others' : protocolText(proto)
      set.ports[`${name}${source === 1 ? ' from' : ''}${blockText(block)}`] = portsText(row, tables)
      if (proto === 0 && source === 0) set.classes[`peer unknown${blockText(block)}`] = bitsText(bitsInRow(row.value, RULES_UNKNOWN), block)
    }
  }
}

function actionOf({ key: { set, index } }: PolicyRowOf<'rules'>, tables: PolicyTables): string {
  const ports = tables.ports({ set, block: Math.floor(index / RULES_PER_BLOCK), proto: 0, source: 0 })
  const word = Math.floor((index % RULES_PER_BLOCK) / 64)
  const has = (kind: number): boolean => ports !== undefined && ((wordAt(bitsInRow(ports, kind), word) >> BigInt(index % 64)) & 1n) === 1n
  const [allows, passes] = [has(RULES_ALLOW), has(RULES_PASS)]
  return allows ? (passes ? 'open' : 'allow') : passes ? 'pass' : 'deny'
}

function blockText(block: number): string {
  return block === 0 ? '' : `, block ${block}`
}

const RULES_A_BYTE = 8

/** "0-2 5" */
function bitsText(bits: Bits, block: number): string {
  const rules: number[] = []
  for (let rule = 0; rule < bits.length * RULES_A_BYTE; rule++)
    if (((bits.charCodeAt(rule >> 3) >> (rule & 7)) & 1) === 1) rules.push(block * RULES_PER_BLOCK + rule)
  return rules.join(' ')
}

/** Rules that ports of this class meet. */
function classBits({ key, value }: PolicyRowOf<'ports'>, number: number, tables: PolicyTables): Bits {
  const isInRow = key.source === 0 && (number === 0 || (value.flags & PORTS_SMALL) !== 0)
  if (isInRow) return bitsInRow(value, RULES_CLASS + number)
  const dimension = key.source === 1 ? DIMENSION_SOURCE_PORT : DIMENSION_PORT
  return tables.bits({ set: key.set, block: key.block, dimension, class: number })?.word ?? ''
}

/** "0-79: 1, 80: 0 1, 81-65535: 1" */
function portsText(row: PolicyRowOf<'ports'>, tables: PolicyTables): string {
  const { key, value } = row
  const runs: { readonly from: number; to: number; readonly class: number }[] = []
  for (let port = 0; port <= 0xffff; port++) {
    const at = value.at[port >> 8] ?? 0
    const page = (at & PORTS_PAGE) === 0 ? undefined : tables.page(key.set, at & ~PORTS_PAGE)
    const number = page === undefined ? at : (page.class[port & 0xff] ?? 0)
    const last = runs.at(-1)
    if (last?.class === number) last.to = port
    else runs.push({ from: port, to: port, class: number })
  }
  const rules = (number: number): string => bitsText(classBits(row, number, tables), key.block)
  return runs.map(({ from, to, class: number }) => `${from === to ? from : `${from}-${to}`}: ${rules(number)}`).join(', ')
}
