// SPDX-License-Identifier: Apache-2.0
/** What the parsers of all kinds of policy have in common. Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { NAMESPACE_LABEL, ORCHESTRATOR_LABEL } from '../../../model/labels.ts'
import { ANYWHERE, DIRECTIONS, ruleOf } from '../../../model/policy.ts'
import type { Direction, Policy, PortMatch, Rule, Side } from '../../../model/policy.ts'
import { equals } from '../../../model/selector/selector.ts'
import type { Selector } from '../../../model/selector/selector.ts'
import { elements, FieldError } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'

/** Nothing but pods. */
export const PODS: Selector = equals(ORCHESTRATOR_LABEL, 'k8s')

export function inNamespace(namespace: string): Selector {
  return equals(NAMESPACE_LABEL, namespace)
}

/** What a rule asks of a packet's protocol and destination port. */
export interface PortNeed {
  readonly protocols: readonly number[] | undefined
  readonly ports: readonly PortMatch[] | undefined
}

export const ANY_PORT: PortNeed = { protocols: undefined, ports: undefined }

/** Those of the same protocols as one, so that rules do not become peers times ports. */
export function joinedNeeds(needs: readonly PortNeed[]): readonly PortNeed[] {
  return [...Map.groupBy(needs, ({ protocols }) => protocols?.join()).values()].map((alike) => {
    const ports = alike.flatMap((need) => need.ports ?? [])
    const isAny = alike.some((need) => need.ports === undefined)
    return { protocols: alike[0]?.protocols, ports: isAny ? undefined : ports }
  })
}

/** One rule for each peer and each protocol. */
export function* crossed(
  at: number,
  of: {
    readonly direction: Direction
    readonly peers: Iterable<Side>
    readonly ports: readonly PortNeed[]
    readonly rule: Partial<Rule>
  },
): Sliced<readonly Rule[]> {
  const rules: Rule[] = []
  for (const peer of of.peers) {
    const source = of.direction === 'ingress' ? peer : ANYWHERE
    const destination = of.direction === 'ingress' ? ANYWHERE : peer
    for (const { protocols, ports } of of.ports)
      rules.push(ruleOf(at, { ...of.rule, protocols, source, destination: ports === undefined ? destination : { ...destination, ports } }))
    yield
  }
  return rules
}

/** What is known of a policy whatever else of it can be read. */
export type Known = Pick<Policy, 'kind' | 'namespace' | 'name' | 'tier' | 'subject' | 'staged'>

/** How the rest of it is read. Paths of what is thrown begin after "spec". */
export interface Reading {
  readonly frame: () => Pick<Policy, 'tier' | 'order' | 'scope'> & { readonly directions: readonly Direction[] }
  readonly rules: (direction: Direction) => Sliced<readonly Rule[]>
}

/** What an element of a policy's list comes to. */
type ReadRule = (value: unknown, at: number) => readonly Rule[] | Sliced<readonly Rule[]>

/** Reads the elements of `spec[direction]`: a policy of Kubernetes may have ten thousands, or one with as many
 * peers. */
export function* rulesIn(spec: Raw, direction: Direction, read: ReadRule): Sliced<readonly Rule[]> {
  const rules: (readonly Rule[])[] = []
  for (const [at, value] of elements(spec, direction).entries()) {
    try {
      const some = read(value, at)
      rules.push('next' in some ? yield* some : some)
    } catch (thrown) {
      throw thrown instanceof FieldError ? thrown.under(`${direction}[${at}]`) : thrown
    }
    yield
  }
  return rules.flat()
}

/** The policy; where it cannot be read it is closed, in the directions it may mean, and the reason is reported. */
export function* policyOf(input: ParseInput, known: Known, { frame, rules }: Reading): Sliced<Policy> {
  let said: ReturnType<Reading['frame']> = { tier: known.tier, order: Number.POSITIVE_INFINITY, scope: 'normal', directions: DIRECTIONS }
  try {
    said = frame()
    const read = new Map<Direction, readonly Rule[]>()
    for (const direction of said.directions) read.set(direction, yield* rules(direction))
    return assembled(known, said, read)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    input.refuse(thrown.under('spec'))
    return { ...assembled(known, said, new Map(said.directions.map((direction) => [direction, []]))), closed: true }
  }
}

function assembled(
  known: Known,
  { tier, order, scope }: ReturnType<Reading['frame']>,
  rules: ReadonlyMap<Direction, readonly Rule[]>,
): Policy {
  return { ...known, tier, order, scope, ingress: rules.get('ingress'), egress: rules.get('egress') }
}

/** The elements of a list that may be missing or empty, which then means everything. */
export function isSaid(raw: Raw, key: string): boolean {
  const value = Object.hasOwn(raw, key) ? raw[key] : undefined
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null
}
