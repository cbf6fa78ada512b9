// SPDX-License-Identifier: Apache-2.0
/** Which flows are asked for, whichever API asks: one of each list that is not empty, and all lists. Layer: flows. */
import { NONE, PRIVATE, PUBLIC, type FlowAction, type FlowKey, type HitKind, type PolicyHit, type Reporter } from '#lib/flows/flow.ts'
import type { PartMatch } from '#lib/flows/wire/policy-match.ts'

/** A text as a whole, or contained in it; upper and lower case differ. */
export type TextMatch = PartMatch

/** All parts that are given, of one hit. */
export interface PolicyMatch {
  readonly kind: HitKind | undefined
  readonly tier: TextMatch | undefined
  readonly namespace: TextMatch | undefined
  readonly name: TextMatch | undefined
  readonly action: FlowAction | undefined
}

export interface Filter {
  readonly sourceNames: readonly TextMatch[]
  readonly sourceNamespaces: readonly TextMatch[]
  readonly destNames: readonly TextMatch[]
  readonly destNamespaces: readonly TextMatch[]
  readonly protocols: readonly TextMatch[]
  readonly destPorts: readonly number[]
  readonly actions: readonly FlowAction[]
  /** of hits that are enforced and of those that staged policies would make */
  readonly policies: readonly PolicyMatch[]
  /** undefined: both */
  readonly reporter: Reporter | undefined
  /** of any hit with the staged policies in force */
  readonly pendingActions: readonly FlowAction[]
}

/** Everything. */
export const NO_FILTER: Filter = {
  sourceNames: [],
  sourceNamespaces: [],
  destNames: [],
  destNamespaces: [],
  protocols: [],
  destPorts: [],
  actions: [],
  policies: [],
  reporter: undefined,
  pendingActions: [],
}

/** What people call some values. */
export type Aliases = readonly (readonly [value: string, alias: string])[]
export const NAME_ALIASES: Aliases = [
  [PUBLIC, 'PUBLIC NETWORK'],
  [PRIVATE, 'PRIVATE NETWORK'],
]
export const NAMESPACE_ALIASES: Aliases = [[NONE, 'Global']]
const NO_ALIASES: Aliases = []

/** The lists of texts, each with where its text is in a key. */
export const TEXT_FIELDS = [
  { list: 'sourceNames', aliases: NAME_ALIASES, column: 'source_name', of: (key: FlowKey) => key.source.name },
  { list: 'sourceNamespaces', aliases: NAMESPACE_ALIASES, column: 'source_namespace', of: (key: FlowKey) => key.source.namespace },
  { list: 'destNames', aliases: NAME_ALIASES, column: 'dest_name', of: (key: FlowKey) => key.dest.name },
  { list: 'destNamespaces', aliases: NAMESPACE_ALIASES, column: 'dest_namespace', of: (key: FlowKey) => key.dest.namespace },
  { list: 'protocols', aliases: NO_ALIASES, column: 'protocol', of: (key: FlowKey) => key.protocol },
] as const

export function isTextMatch({ value, isFuzzy }: TextMatch, text: string): boolean {
  return isFuzzy ? text.includes(value) : text === value
}

/** For flows as they come; of those in tables `filterSql` says the same. */
export function matches(filter: Filter, key: FlowKey): boolean {
  const isAny = <T>(list: readonly T[], is: (one: T) => boolean): boolean => list.length === 0 || list.some(is)
  const hits = [...key.enforced, ...key.pending]
  return (
    TEXT_FIELDS.every(({ list, aliases, of }) => isAny(filter[list], (match) => isNamed(match, of(key), aliases))) &&
    isAny(filter.destPorts, (port) => port === key.destPort) &&
    isAny(filter.actions, (action) => action === key.action) &&
    isAny(filter.policies, (policy) => hits.some((hit) => isPolicy(policy, hit))) &&
    (filter.reporter === undefined || filter.reporter === key.reporter) &&
    isAny(filter.pendingActions, (action) => key.pending.some((hit) => hit.action === action))
  )
}

function isNamed(match: TextMatch, text: string, aliases: Aliases): boolean {
  return isTextMatch(match, text) || aliases.some(([value, alias]) => value === text && isTextMatch(match, alias))
}

function isPolicy({ kind, tier, namespace, name, action }: PolicyMatch, hit: PolicyHit): boolean {
  const isPart = (match: TextMatch | undefined, text: string): boolean => match === undefined || isTextMatch(match, text)
  return (
    (kind === undefined || kind === hit.kind) &&
    isPart(tier, hit.tier) &&
    isPart(namespace, hit.namespace) &&
    isPart(name, hit.name) &&
    (action === undefined || action === hit.action)
  )
}
