// SPDX-License-Identifier: Apache-2.0
/** What a line says to a peer whatever else the packet is: one lookup then is the verdict. Layer: agent/compile
 * (pure). */
import { RULE_ALLOW, RULE_DENY, RULE_OPEN, RULES_PER_BLOCK, SURE_NOT } from '#lib/base/bpf-constants.ts'
import { firstBit } from './bits.ts'
import type { Bits } from './bits.ts'
import { asksOnlyPeer } from '../rules/rule-list.ts'
import type { ListedRule } from '../rules/rule-list.ts'

const ACTIONS = { deny: RULE_DENY, allow: RULE_ALLOW, open: RULE_OPEN }

/** `peer`: which rules of the first block such a peer meets. Returns the rule's number * 4 + enum rule_action, or
 * SURE_NOT: ports, sources or this end's address matter, or a later block decides. */
export function peerOnlyVerdicts(rules: readonly ListedRule[], peer: Bits): number {
  let from = 0
  while (from < RULES_PER_BLOCK) {
    const index = firstBit(peer, from)
    const rule = index === undefined ? undefined : rules[index]?.rule
    if (index === undefined || rule === undefined || !asksOnlyPeer(rule)) return SURE_NOT
    if (rule.action !== 'pass') return index * 4 + ACTIONS[rule.action]
    from = nextStage(rules, index)
  }
  return SURE_NOT
}

/** Of the first block; where that has none, the next block begins or the rules end. */
function nextStage(rules: readonly ListedRule[], after: number): number {
  let at = after + 1
  while (at < RULES_PER_BLOCK && rules[at]?.begins === false) at++
  return at
}
