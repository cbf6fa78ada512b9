// SPDX-License-Identifier: Apache-2.0
/** What the parsers of all kinds of policy have in common. Layer: lib/kube. */
import { NAMESPACE_LABEL, ORCHESTRATOR_LABEL } from '../model/labels.ts'
import { ANYWHERE } from '../model/policy.ts'
import type { Policy, PortMatch, Rule, Side } from '../model/policy.ts'
import { equals } from '../model/selector.ts'
import type { Selector } from '../model/selector.ts'
import { FieldError } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'

/** Nothing but pods. */
export const PODS: Selector = equals(ORCHESTRATOR_LABEL, 'k8s')

export function inNamespace(namespace: string): Selector {
  return equals(NAMESPACE_LABEL, namespace)
}

export type Direction = 'ingress' | 'egress'

/** A rule of which only what is given is asked. */
export function ruleOf(at: number, of: Partial<Omit<Rule, 'at'>>): Rule {
  return {
    at,
    action: 'allow',
    name: undefined,
    ipVersion: undefined,
    protocols: undefined,
    notProtocols: [],
    icmp: undefined,
    notIcmp: undefined,
    source: ANYWHERE,
    destination: ANYWHERE,
    ...of,
  }
}

/** What a rule asks of a packet's protocol and destination port. */
export interface PortNeed {
  readonly protocols: readonly number[] | undefined
  readonly ports: readonly PortMatch[] | undefined
}

export const ANY_PORT: PortNeed = { protocols: undefined, ports: undefined }

/** One rule for each peer and each protocol. */
export function crossed(
  at: number,
  of: {
    readonly direction: Direction
    readonly peers: readonly Side[]
    readonly ports: readonly PortNeed[]
    readonly rule: Partial<Rule>
  },
): readonly Rule[] {
  return of.peers.flatMap((peer) =>
    of.ports.map(({ protocols, ports }) => {
      const source = of.direction === 'ingress' ? peer : ANYWHERE
      const destination = of.direction === 'ingress' ? ANYWHERE : peer
      return ruleOf(at, { ...of.rule, protocols, source, destination: ports === undefined ? destination : { ...destination, ports } })
    }),
  )
}

/** What can be said of a policy before its rules are read. */
export type Frame = Omit<Policy, 'ingress' | 'egress' | 'closed'> & { readonly directions: readonly Direction[] }

/** The policy; where its rules cannot be read it is closed, and why is said. Paths that `rulesOf` throws begin after "spec". */
export function policyOf(input: ParseInput, { directions, ...frame }: Frame, rulesOf: (spec: Direction) => readonly Rule[]): Policy {
  try {
    const rules = (direction: Direction): readonly Rule[] | undefined => (directions.includes(direction) ? rulesOf(direction) : undefined)
    return { ...frame, ingress: rules('ingress'), egress: rules('egress') }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    input.refuse(thrown.under('spec'))
    const none = (direction: Direction): readonly Rule[] | undefined => (directions.includes(direction) ? [] : undefined)
    return { ...frame, ingress: none('ingress'), egress: none('egress'), closed: true }
  }
}

/** The elements of a list that may be missing or empty, which then means everything. */
export function isSaid(raw: Raw, key: string): boolean {
  const value = Object.hasOwn(raw, key) ? raw[key] : undefined
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null
}
