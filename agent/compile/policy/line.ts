// SPDX-License-Identifier: Apache-2.0
/** Policies in their order → one line of rules. Layer: agent/compile (pure). */
import { RULES_PER_BLOCK } from '#lib/base/flags.ts'
import { fnv1a64 } from '#lib/base/hash.ts'
import type { ExpandedRule } from './expand.ts'
import { isFull, rangesFor } from './plane.ts'

/** Rules that are asked in order, and what comes when none of them holds. */
export interface Stage {
  readonly rules: readonly ExpandedRule[]
  /** a rule that always holds; undefined: on to the next stage */
  readonly end: ExpandedRule | undefined
}

export interface LineRule {
  readonly rule: ExpandedRule
  /** where `pass` goes on; 0 on others */
  readonly next: number
}

export interface Line {
  readonly rules: readonly LineRule[]
  /** of all that is in it, 16 hex digits */
  readonly hash: string
}

/** What programs look through, in 16 blocks; what would come later is denied. */
export const LONGEST_LINE = 16 * RULES_PER_BLOCK

/** Ends in a rule that always holds: `last`. Rules that nothing can reach are left out. */
export function lineOf(stages: readonly Stage[], last: ExpandedRule): Line {
  const rules: LineRule[] = []
  const passes: { readonly at: number; readonly stage: number }[] = []
  const starts: number[] = []
  let open = true
  const targets = new Set<number>()
  const put = (rule: ExpandedRule, stage: number): void => {
    if (!open) return
    if (rule.action === 'pass') {
      passes.push({ at: rules.length, stage })
      targets.add(stage + 1)
    }
    rules.push({ rule, next: 0 })
    if (isCertain(rule)) open = false
  }
  for (const [stage, { rules: some, end }] of [...stages, { rules: [last], end: undefined }].entries()) {
    open ||= targets.has(stage)
    starts.push(rules.length)
    for (const rule of some) put(rule, stage)
    if (end !== undefined) put(end, stage)
    // a certain `pass` goes on with the next stage, which is among the targets
  }
  for (const { at, stage } of passes) {
    const passed = rules[at]
    if (passed !== undefined) rules[at] = { rule: passed.rule, next: Math.min(starts[stage + 1] ?? rules.length, LONGEST_LINE) }
  }
  rules.length = Math.min(rules.length, LONGEST_LINE)
  return { rules, hash: fnv1a64(rules.map(({ rule, next }) => `${rule.hash}${next}`).join()) }
}

export function isSameLine(a: Line, b: Line): boolean {
  return (
    a.hash === b.hash &&
    a.rules.length === b.rules.length &&
    a.rules.every(({ rule, next }, at) => b.rules[at]?.rule.text === rule.text && b.rules[at].next === next)
  )
}

/** Does it hold for every packet? */
function isCertain({ peer, own, ports, source }: ExpandedRule): boolean {
  return (
    peer.length === 0 &&
    own.length === 0 &&
    [ports, source].every((plane) => [0, ...plane.keys()].every((proto) => isFull(rangesFor(plane, proto))))
  )
}
