// SPDX-License-Identifier: Apache-2.0
/** What the programs do with a flow's first packet, lookup by lookup: policy.h in TypeScript. Layer: agent. */
import {
  DIMENSION_OWN,
  DIMENSION_PEER,
  DIMENSION_PORT,
  DIMENSION_SOURCE_PORT,
  PORTS_OWN,
  PORTS_PAGE,
  PORTS_SOURCE,
  RULE_ALLOW,
  RULE_OPEN,
  RULE_PASS,
  RULES_PER_BLOCK,
} from '#lib/base/flags.ts'
import type { Addr } from '#lib/base/ip.ts'
import { firstCommon } from '#agent/compile/policy/bits.ts'
import type { Bits } from '#agent/compile/policy/bits.ts'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { Dimension, PolicyRowOf, RuleAction, SetId } from '#agent/compile/policy/tables.ts'
import type { PolicyLookup } from './tables.ts'

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

/** Looks within blocks: as many as the programs take. */
const LOOKS = 40

export interface PolicyVerdict {
  /** `open`: nothing is said, whoever is asked next decides */
  readonly action: 'allow' | 'deny' | 'open'
  /** number of the rule that decided; undefined where none was asked, or none holds */
  readonly rule: number | undefined
  /** of the rules that passed */
  readonly passed: readonly number[]
}

/** Whom policy takes the address for. */
export function identityOf(tables: PolicyLookup, addr: Addr): number {
  const known = tables.end(addr)?.identity ?? 0
  return known === 0 ? (tables.net(addr) ?? 0) : known
}

export function walk(tables: PolicyLookup, query: PolicyQuery): PolicyVerdict {
  const passed: number[] = []
  if (query.set === NO_SET) return { action: 'allow', rule: undefined, passed }
  let at = 0
  let blocks = 0
  for (let look = 0; look < LOOKS; look++) {
    const found = firstRule(tables, query, at)
    blocks = found.blocks ?? blocks
    if (found.index === undefined) {
      at = (Math.floor(at / RULES_PER_BLOCK) + 1) * RULES_PER_BLOCK
      if (at / RULES_PER_BLOCK >= blocks) break
      continue
    }
    const rule = tables.rule(query.set, found.index)
    if (rule === undefined) break
    if (rule.action !== RULE_PASS) return { action: outcomeOf(rule.action), rule: rule.id, passed }
    passed.push(rule.id)
    at = rule.next
  }
  return { action: 'deny', rule: undefined, passed }
}

function outcomeOf(action: RuleAction): PolicyVerdict['action'] {
  if (action === RULE_ALLOW) return 'allow'
  return action === RULE_OPEN ? 'open' : 'deny'
}

/** The first rule from `at` on, in its block, that the flow meets. */
function firstRule(
  tables: PolicyLookup,
  query: PolicyQuery,
  at: number,
): { readonly index: number | undefined; readonly blocks: number | undefined } {
  const block = Math.floor(at / RULES_PER_BLOCK)
  const ports = portsOf(tables, query, { block, source: 0 })
  if (ports === undefined) return { index: undefined, blocks: undefined }
  const { blocks } = ports
  const all = [
    bitsOf(tables, { set: query.set, block, dimension: DIMENSION_PEER, class: query.peer }),
    bitsOfPort(tables, query, { block, ports, dimension: DIMENSION_PORT }),
  ]
  if ((ports.flags & PORTS_OWN) !== 0) all.push(bitsOf(tables, { set: query.set, block, dimension: DIMENSION_OWN, class: query.own }))
  if ((ports.flags & PORTS_SOURCE) !== 0) {
    const sources = portsOf(tables, query, { block, source: 1 })
    all.push(sources && bitsOfPort(tables, query, { block, ports: sources, dimension: DIMENSION_SOURCE_PORT }))
  }
  const bits = all.filter((one) => one !== undefined)
  const bit = bits.length < all.length ? undefined : firstCommon(bits, at % RULES_PER_BLOCK)
  return { index: bit === undefined ? undefined : block * RULES_PER_BLOCK + bit, blocks }
}

/** The rules of the block whose condition in this dimension a class meets. */
function bitsOf(tables: PolicyLookup, key: PolicyRowOf<'bits'>['key']): Bits | undefined {
  return (tables.bits(key) ?? tables.bits({ ...key, class: 0 }))?.word
}

interface PortsOf {
  readonly block: number
  readonly ports: PolicyRowOf<'ports'>['value']
  readonly dimension: Dimension
}

function bitsOfPort(tables: PolicyLookup, query: PolicyQuery, { block, ports, dimension }: PortsOf): Bits | undefined {
  const port = dimension === DIMENSION_PORT ? query.port : query.sourcePort
  const at = ports.at[port >> 8] ?? 0
  const number = (at & PORTS_PAGE) === 0 ? at : tables.page(query.set, at & ~PORTS_PAGE)?.class[port & 0xff]
  return number === undefined ? undefined : bitsOf(tables, { set: query.set, block, dimension, class: number })
}

function portsOf(tables: PolicyLookup, { set, proto }: PolicyQuery, of: { readonly block: number; readonly source: 0 | 1 }) {
  return tables.ports({ set, proto, ...of }) ?? tables.ports({ set, proto: 0, ...of })
}
