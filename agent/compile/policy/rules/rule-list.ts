// SPDX-License-Identifier: Apache-2.0
/** Policies in their order → one line of rules. Layer: agent/compile (pure). */
import { atOnce, type Sliced, type SlicedValues } from '#lib/base/async/slices.ts'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import { fnv1a64 } from '#lib/base/hash.ts'
import { CUT, plainRule } from './expand.ts'
import type { ExpandedRule } from './expand.ts'
import { isEverything } from './protocol-ports.ts'

/** Rules that are asked in order, and what comes when none of them holds. */
export interface Stage {
  readonly rules: SlicedValues<ExpandedRule>
  /** a rule that always holds; undefined: on to the next stage */
  readonly end: ExpandedRule | undefined
}

export interface ListedRule {
  readonly rule: ExpandedRule
  /** the first one of its stage: `pass` goes on with the next such */
  readonly begins: boolean
}

export interface RuleList {
  readonly rules: readonly ListedRule[]
  /** of all that is in it, 16 hex digits */
  readonly hash: string
  /** the namespace whose policies have rules in it */
  readonly owner: string | undefined
  /** it would be longer than programs look: what would come later is denied */
  readonly isCut: boolean
}

/** Blocks of a line that programs look through (NP_RULE_BLOCKS). */
export const MOST_BLOCKS = 16
/** The same on kernels before 5.6, whose verifier has them look at one only. */
export const FLOOR_BLOCKS = 1

/** Programs pass so many stages in one block. */
const STAGES_OF_BLOCK = 15
/** Fills a block up. */
export const NEVER: ListedRule = { rule: { ...plainRule('deny', 'never'), ports: new Map([[0, []]]) }, begins: false }

function makeRoom(rules: ListedRule[]): void {
  const inBlock = rules.slice(rules.length - (rules.length % RULES_PER_BLOCK))
  if (inBlock.filter(({ begins }) => begins).length < STAGES_OF_BLOCK) return
  while (rules.length % RULES_PER_BLOCK !== 0) rules.push(NEVER)
}

function* followedBy(rules: SlicedValues<ExpandedRule>, end: ExpandedRule | undefined): SlicedValues<ExpandedRule> {
  yield* rules
  if (end !== undefined) yield end
}

export interface RuleListLimits {
  /** so many are looked through */
  readonly blocks: number
  /** the namespace has too many rules already: of a line with one of them no more is made */
  readonly isOverfull: (namespace: string) => boolean
}

/** Ends in a rule that always holds: `last`. Rules that nothing can reach are left out. */
export function* ruleListOf(stages: readonly Stage[], last: ExpandedRule, { blocks, isOverfull }: RuleListLimits): Sliced<RuleList> {
  const longest = blocks * RULES_PER_BLOCK
  const rules: ListedRule[] = []
  let open = true
  let passed = false
  for (const { rules: some, end } of [...stages, { rules: [last], end: undefined }]) {
    open ||= passed
    passed = false
    let begins = true
    for (const rule of followedBy(some, end)) {
      // no more of them are made than count
      if (!open || rules.length > longest) break
      yield
      if (rule === undefined) continue
      if (rule.owner !== undefined && rules.length < longest && isOverfull(rule.owner)) return overfullLine(rule.owner)
      if (begins) makeRoom(rules)
      rules.push({ rule, begins })
      begins = false
      passed ||= rule.action === 'pass'
      open = !isCertain(rule)
    }
  }
  const isCut = rules.length > longest || rules.some(({ rule }) => rule === CUT)
  if (rules.length > longest) rules.length = longest
  const owner = rules.find(({ rule }) => rule.owner !== undefined)?.rule.owner
  return { rules, hash: fnv1a64(rules.map(({ rule, begins }) => `${rule.hash}${Number(begins)}`).join()), owner, isCut }
}

/** In the place of a line for which there is no room. */
export const NO_ROOM = 'no room'
export const CLOSED = atOnce(ruleListOf([], plainRule('deny', NO_ROOM), { blocks: 1, isOverfull: () => false }))

/** In the place of a line of a namespace that has too many rules already, and is closed for that. */
export function overfullLine(namespace: string): RuleList {
  return { ...CLOSED, hash: fnv1a64(`${OVERFULL} ${namespace}`), owner: namespace }
}

export function isOverfullLine({ hash, owner }: RuleList): boolean {
  return owner !== undefined && hash === overfullLine(owner).hash
}

const OVERFULL = 'overfull'

export function isSameRuleList(a: RuleList, b: RuleList): boolean {
  return (
    a.hash === b.hash &&
    a.rules.length === b.rules.length &&
    a.rules.every(({ rule, begins }, at) => b.rules[at]?.rule.text === rule.text && b.rules[at].begins === begins)
  )
}

/** Does it hold for every packet? */
function isCertain(rule: ExpandedRule): boolean {
  return rule.peer.length === 0 && asksOnlyPeer(rule)
}

/** Is the other end's address all that it asks about? */
export function asksOnlyPeer({ own, ports, source }: ExpandedRule): boolean {
  return own.length === 0 && isEverything(ports) && isEverything(source)
}
