// SPDX-License-Identifier: Apache-2.0
/** Which bits of packets' marks rules of others use. Layer: agent/node (pure). */
import { isObject } from '#lib/base/object.ts'

/** NP_MARK_… of bpf/include/base/mark.h: what programs tell each other of a packet. A rule that sets one lets the
 * packet pass unjudged. */
export const OUR_MARK_BITS = 0x07000000

export interface MarkUse {
  /** "iptables-nft mangle, chain PREROUTING" */
  readonly where: string
  /** that it sets, takes away or asks for */
  readonly bits: number
}

const ALL_BITS = 0xffffffff

/** Of a value with its mask. A mask of all bits is what those write who think that no other uses marks: then the bits
 * of the value count. */
export function usedBits(value: number, mask: number): number {
  return mask >>> 0 === ALL_BITS ? value >>> 0 : mask >>> 0
}

/** Uses of our bits, each place once. */
export function collisions(uses: readonly MarkUse[]): readonly MarkUse[] {
  const found = new Map<string, number>()
  for (const { where, bits } of uses) {
    const ours = (bits & OUR_MARK_BITS) >>> 0
    if (ours !== 0) found.set(where, ((found.get(where) ?? 0) | bits) >>> 0)
  }
  return [...found].map(([where, bits]) => ({ where, bits }))
}

export function bitsText(bits: number): string {
  return `0x${(bits >>> 0).toString(16).padStart(8, '0')}`
}

/** From the output of `iptables-save`. Marks of connections are another thing, but for what is copied from them. */
export function iptablesMarks(tool: string, saved: string): MarkUse[] {
  let table = ''
  return saved.split('\n').flatMap((line) => {
    if (line.startsWith('*')) table = line.slice(1).trim()
    const [, chain] = /^-A (\S+) /.exec(line) ?? []
    if (chain === undefined) return []
    return bitsOfRule(line).map((bits) => ({ where: `${tool} ${table}, chain ${chain}`, bits }))
  })
}

const VALUE = '(0x[0-9a-f]+|[0-9]+)(?:/(0x[0-9a-f]+|[0-9]+))?'
const RULE_PARTS = [
  new RegExp(`-m mark (?:! )?--mark ${VALUE}`, 'g'),
  new RegExp(`-j MARK --set-x?mark ${VALUE}`, 'g'),
  /-j CONNMARK --restore-mark --nfmask ()(0x[0-9a-f]+)/g,
]

/** Comments may say anything. */
function bitsOfRule(line: string): number[] {
  const rule = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
  return RULE_PARTS.flatMap((part) =>
    [...rule.matchAll(part)].map(([, value = '', mask]) => usedBits(Number(value), mask === undefined ? ALL_BITS : Number(mask))),
  )
}

/** From `nft -j list ruleset`. `skipped`: tables that another tool tells of better. */
export function nftMarks(listing: string, skipped: (family: string, table: string) => boolean): MarkUse[] {
  const parsed: unknown = JSON.parse(listing)
  const entries: readonly unknown[] = isObject(parsed) && Array.isArray(parsed['nftables']) ? parsed['nftables'] : []
  return entries.flatMap((entry) => {
    const rule = isObject(entry) && isObject(entry['rule']) ? entry['rule'] : {}
    const [family, table, chain, expressions] = [rule['family'], rule['table'], rule['chain'], rule['expr']]
    if (typeof family !== 'string' || typeof table !== 'string' || !Array.isArray(expressions) || skipped(family, table)) return []
    const where = `nft ${family} ${table}, chain ${String(chain)}`
    return expressions.flatMap((one: unknown) => bitsOfStatement(one).map((bits) => ({ where, bits })))
  })
}

function bitsOfStatement(statement: unknown): number[] {
  const { match, mangle } = isObject(statement) ? statement : {}
  if (isObject(mangle) && isMark(mangle['key'])) return bitsOfValue(mangle['value'])
  if (!isObject(match) || !hasMark(match['left'])) return []
  const mask = maskOf(match['left'])
  return numbersOf(match['right']).map((value) => usedBits(value, mask ?? ALL_BITS))
}

/** What an expression makes of the mark: bits that it adds or turns, and those that it takes away. */
function bitsOfValue(value: unknown): number[] {
  if (typeof value === 'number') return [value]
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([operator, operands]) => {
    if (!Array.isArray(operands)) return []
    const numbers = operands.filter((one): one is number => typeof one === 'number')
    const own = operator === '&' ? numbers.map((one) => ~one >>> 0) : operator === '|' || operator === '^' ? numbers : []
    return [...own, ...operands.filter(isObject).flatMap(bitsOfValue)]
  })
}

function isMark(key: unknown): boolean {
  return isObject(key) && isObject(key['meta']) && key['meta']['key'] === 'mark'
}

/** The mark itself, or with a mask. */
function hasMark(left: unknown): boolean {
  if (isMark(left)) return true
  return isObject(left) && Array.isArray(left['&']) && left['&'].some(isMark)
}

function maskOf(left: unknown): number | undefined {
  const operands: readonly unknown[] = isObject(left) && Array.isArray(left['&']) ? left['&'] : []
  return operands.find((one) => typeof one === 'number')
}

/** Of one value, or of a set of them. */
function numbersOf(right: unknown): number[] {
  if (typeof right === 'number') return [right]
  const set: unknown = isObject(right) ? right['set'] : right
  return Array.isArray(set) ? set.filter((one) => typeof one === 'number') : []
}
