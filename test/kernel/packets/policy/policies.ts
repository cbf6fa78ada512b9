// SPDX-License-Identifier: Apache-2.0
/** Policies of packet cases, in few words; pods are those of testkit/packets/policy.ts. Layer: test. */
import { parseCidr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule, Scope, Side } from '#lib/model/policy.ts'
import { equals } from '#lib/model/selector/selector.ts'

export interface PolicyGiven {
  /** pod that it selects, or HOST of testkit/packets/policy.ts */
  readonly of: string
  readonly scope?: Scope
  readonly ingress?: readonly Partial<Rule>[]
  readonly egress?: readonly Partial<Rule>[]
  readonly tier?: 'adminnetworkpolicy' | 'default'
  readonly staged?: 'Set' | 'Delete'
  /** default: GlobalNetworkPolicy */
  readonly kind?: 'ClusterNetworkPolicy'
}

/** Its rules are "<name> ingress 0" and so on, see {@link ruleName}. */
export function policy(name: string, { of, ingress, egress, tier = 'default', staged, scope = 'normal', kind }: PolicyGiven): Policy {
  const rules = (all: readonly Partial<Rule>[] | undefined) => all?.map((rule, at) => ruleOf(at, rule))
  return {
    kind: kind ?? (staged === undefined ? 'GlobalNetworkPolicy' : 'StagedGlobalNetworkPolicy'),
    namespace: '',
    name,
    tier,
    order: 1,
    subject: equals('name', of),
    ingress: rules(ingress),
    egress: rules(egress),
    staged,
    scope,
  }
}

/** By which a flow's entry names the rule. */
export function ruleName(name: string, direction: 'ingress' | 'egress', at: number): string {
  return `GlobalNetworkPolicy/${name} ${direction} ${at}`
}

export function podSide(name: string): Side {
  return { ...ANYWHERE, selector: equals('name', name) }
}

export function netSide(...nets: readonly string[]): Side {
  return { ...ANYWHERE, nets: nets.map(parseCidr) }
}

export function portSide(from: number, to = from): Side {
  return { ...ANYWHERE, ports: [{ from, to }] }
}

/** TCP and UDP to this port. */
export function toPort(from: number, to = from): Partial<Rule> {
  return { protocols: [6, 17], destination: portSide(from, to) }
}

/** Lets what comes to "pod" in to these ports. */
export function opens(...ports: readonly number[]): readonly Policy[] {
  return [policy('in', { of: 'pod', ingress: ports.map((port) => toPort(port)) })]
}

/** What becomes of a packet that policy does not let be. */
export const DENIED = { action: 'drop', reason: 'DROP_POLICY' } as const
