// SPDX-License-Identifier: Apache-2.0
/** When the peer alone decides. Layer: test. */
import { describe, expect, test } from 'vitest'
import { BitDraft } from '#agent/compile/policy/rulesets/bits.ts'
import { plainRule } from '#agent/compile/policy/rules/expand.ts'
import type { Outcome } from '#agent/compile/policy/rules/expand.ts'
import type { ListedRule } from '#agent/compile/policy/rules/rule-list.ts'
import { FULL } from '#agent/compile/policy/rules/protocol-ports.ts'
import { peerOnlyVerdicts } from '#agent/compile/policy/rulesets/peer-only-verdict.ts'
import { RULE_ALLOW, RULE_DENY, RULE_OPEN, SURE_NOT } from '#lib/base/bpf-constants.ts'

function rule(action: Outcome, begins = false): ListedRule {
  return { rule: plainRule(action, action), begins }
}

/** Asks for a port. */
function narrow(action: Outcome): ListedRule {
  return {
    rule: {
      ...plainRule(action, action),
      ports: new Map([
        [0, []],
        [6, [[80, 80]]],
      ]),
    },
    begins: false,
  }
}

function meets(...rules: readonly number[]): string {
  const draft = new BitDraft(16)
  for (const one of rules) draft.put(one, true)
  return draft.toBits()
}

describe('sureWord', () => {
  test('the first rule that is met, and its action', () => {
    const line = [rule('allow', true), rule('deny'), rule('open')]
    expect(peerOnlyVerdicts(line, meets(0, 1))).toBe(RULE_ALLOW)
    expect(peerOnlyVerdicts(line, meets(1, 2))).toBe(4 + RULE_DENY)
    expect(peerOnlyVerdicts(line, meets(2))).toBe(8 + RULE_OPEN)
  })

  test('not where it asks for more, nor where none is met; what comes behind does not matter', () => {
    const line = [narrow('allow'), rule('deny'), narrow('deny')]
    expect(peerOnlyVerdicts(line, meets(0, 1))).toBe(SURE_NOT)
    expect(peerOnlyVerdicts(line, meets(1, 2))).toBe(4 + RULE_DENY)
    expect(peerOnlyVerdicts(line, meets())).toBe(SURE_NOT)
    const everyone = {
      ...narrow('allow'),
      rule: {
        ...narrow('allow').rule,
        ports: new Map([
          [0, FULL],
          [6, FULL],
        ]),
      },
    }
    expect(peerOnlyVerdicts([everyone], meets(0)), 'all ports by name').toBe(RULE_ALLOW)
  })

  test('a rule that passes leads to the next stage, if that is in the same block', () => {
    const line = [rule('pass', true), rule('deny'), rule('allow', true)]
    expect(peerOnlyVerdicts(line, meets(0, 1, 2))).toBe(8 + RULE_ALLOW)
    expect(peerOnlyVerdicts([narrow('pass'), rule('deny')], meets(0, 1))).toBe(SURE_NOT)
    expect(peerOnlyVerdicts([rule('pass', true), rule('deny')], meets(0, 1)), 'there is none').toBe(SURE_NOT)
    const far = [rule('pass', true), ...Array.from({ length: 1023 }, () => rule('deny')), rule('allow', true)]
    expect(peerOnlyVerdicts(far, meets(0)), 'it is in the next block').toBe(SURE_NOT)
  })

  test('rules are found in every word', () => {
    const line = Array.from({ length: 1024 }, () => rule('deny'))
    for (const at of [7, 8, 63, 64, 1023]) expect(peerOnlyVerdicts(line, meets(at))).toBe(4 * at + RULE_DENY)
  })
})
