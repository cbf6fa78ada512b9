// SPDX-License-Identifier: Apache-2.0
/** Rules by the numbers that programs record, with their names where the agent tells them. Layer: cli (pure). */

export interface RuleNames {
  /** "NetworkPolicy/shop/db ingress 0"; undefined: it is not known */
  nameOf(number: number): string | undefined
  /** why there are none; undefined: there are */
  readonly missing: string | undefined
}

export const NO_NAMES: RuleNames = { nameOf: () => undefined, missing: undefined }

export interface RuleRecord {
  readonly number: number
  /** null: the agent does not tell it */
  readonly name: string | null
}

/** null: none was asked */
export interface FlowRules {
  readonly egress: RuleRecord | null
  readonly ingress: RuleRecord | null
  readonly stagedEgress: RuleRecord | null
  readonly stagedIngress: RuleRecord | null
}

/** As a flow's entry has them: 0 where none was asked. */
export interface RuleNumbers {
  readonly egress_rule: number
  readonly ingress_rule: number
  readonly staged_egress_rule: number
  readonly staged_ingress_rule: number
}

export function ruleRecord(number: number, names: RuleNames): RuleRecord {
  return { number, name: names.nameOf(number) ?? null }
}

export function flowRules(of: RuleNumbers, names: RuleNames): FlowRules {
  const rule = (number: number): RuleRecord | null => (number === 0 ? null : ruleRecord(number, names))
  return {
    egress: rule(of.egress_rule),
    ingress: rule(of.ingress_rule),
    stagedEgress: rule(of.staged_egress_rule),
    stagedIngress: rule(of.staged_ingress_rule),
  }
}

export function ruleText(rule: RuleRecord | null): string {
  return rule === null ? '-' : (rule.name ?? `rule ${rule.number}`)
}
