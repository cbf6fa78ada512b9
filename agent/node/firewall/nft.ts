// SPDX-License-Identifier: Apache-2.0
/** The output of `nft -j list table` as rules that can be walked. Layer: agent/node (pure). */
import { isObject } from '#lib/base/object.ts'
import {
  any,
  interfaceIs,
  isSpecialNetwork,
  not,
  type Action,
  type Answer,
  type Chain,
  type Hook,
  type Match,
  type Probe,
  type Rule,
  type RuleSet,
} from './evaluate.ts'

type Fields = Readonly<Record<string, unknown>>

export interface BaseTable {
  readonly family: string
  readonly table: string
}

const HOOKS: readonly Hook[] = ['input', 'forward', 'output']
const FAMILIES: ReadonlyMap<string, readonly Probe['family'][]> = new Map([
  ['ip', ['ipv4']],
  ['ip6', ['ipv6']],
  ['inet', ['ipv4', 'ipv6']],
])
/** Of a rule, what decides nothing. */
const PASSING = new Set(['counter', 'log', 'comment', 'mangle', 'ct helper', 'ct timeout', 'notrack', 'meter', 'set', 'flow'])

/** From `nft -j list chains`: tables that filter what comes in, passes through or leaves, each once. */
export function filterTables(listing: string): BaseTable[] {
  const found = new Map<string, BaseTable>()
  for (const chain of entries(listing, 'chain')) {
    const { family, table, type } = chain
    if (typeof family !== 'string' || typeof table !== 'string' || type !== 'filter' || hookOf(chain) === undefined) continue
    if (FAMILIES.has(family)) found.set(`${family} ${table}`, { family, table })
  }
  return [...found.values()]
}

/** From `nft -j list table FAMILY NAME`. */
export function nftRules({ family, table }: BaseTable, listing: string): RuleSet {
  const chains = new Map<string, Chain & { readonly rules: Rule[] }>()
  for (const chain of entries(listing, 'chain')) {
    const [name, hook] = [textOf(chain['name']), hookOf(chain)]
    chains.set(name, { name, rules: [], base: hook === undefined ? undefined : { hook, drops: chain['policy'] === 'drop' } })
  }
  for (const rule of entries(listing, 'rule')) {
    const { expr } = rule
    chains.get(textOf(rule['chain']))?.rules.push(ruleOf(Array.isArray(expr) ? expr.filter(isObject) : []))
  }
  return { name: `nft ${family} ${table}`, families: FAMILIES.get(family) ?? [], chains }
}

function entries(listing: string, kind: 'chain' | 'rule'): Fields[] {
  const parsed: unknown = JSON.parse(listing)
  const all = isObject(parsed) && Array.isArray(parsed['nftables']) ? parsed['nftables'] : []
  return all.flatMap((entry: unknown) => (isObject(entry) && isObject(entry[kind]) ? [entry[kind]] : []))
}

function hookOf(chain: Fields): Hook | undefined {
  return HOOKS.find((hook) => hook === chain['hook'])
}

function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The last statement that decides something is the rule's; none follows it. */
function ruleOf(statements: readonly Fields[]): Rule {
  const matches: Match[] = []
  let action: Action = { kind: 'none' }
  for (const statement of statements) {
    const [kind = '', body] = Object.entries(statement)[0] ?? []
    const decided = actionOf(kind, body)
    if (decided !== undefined) action = decided
    else if (kind === 'match' && isObject(body)) matches.push(matchOf(body))
    else if (!PASSING.has(kind)) matches.push(() => undefined)
  }
  return { matches, action }
}

function actionOf(kind: string, body: unknown): Action | undefined {
  switch (kind) {
    case 'accept':
      return { kind: 'accept' }
    case 'drop':
    case 'reject':
      return { kind: 'drop' }
    case 'return':
      return { kind: 'return' }
    case 'continue':
      return { kind: 'none' }
    case 'jump':
    case 'goto':
      return { kind, chain: isObject(body) ? textOf(body['target']) : '' }
    case 'vmap':
      return isObject(body) ? choiceOf(body) : undefined
    default:
      return undefined
  }
}

function choiceOf({ key, data }: Fields): Action {
  const pairs: unknown = isObject(data) ? data['set'] : undefined
  if (!Array.isArray(pairs)) return { kind: 'choose', of: [[() => undefined, { kind: 'accept' }]] }
  const of = pairs.flatMap((pair: unknown): (readonly [Match, Action])[] => {
    const [value, verdict] = listOf(pair) ?? []
    const [kind = '', body] = isObject(verdict) ? (Object.entries(verdict)[0] ?? []) : []
    return [[(probe) => equals(key, value, probe), actionOf(kind, body) ?? { kind: 'none' }]]
  })
  return { kind: 'choose', of }
}

function matchOf({ op, left, right }: Fields): Match {
  if (op === '==' || op === 'in') return (probe) => equals(left, right, probe)
  if (op === '!=') return (probe) => not(equals(left, right, probe))
  return () => undefined
}

function equals(left: unknown, right: unknown, probe: Probe): Answer {
  const values = valuesOf(right)
  if (values === undefined) return undefined
  return any(values.map((value) => isValue(left, value, probe)))
}

/** undefined: a named set, or what else cannot be looked into */
function valuesOf(right: unknown): readonly unknown[] | undefined {
  const list = listOf(right) ?? (isObject(right) ? listOf(right['set']) : undefined)
  if (list !== undefined) return list
  if (typeof right === 'string' && right.startsWith('@')) return undefined
  return [right]
}

function isValue(left: unknown, value: unknown, probe: Probe): Answer {
  if (!isObject(left)) return undefined
  const { meta, payload, ct, fib } = left
  if (isObject(meta)) return isMeta(textOf(meta['key']), value, probe)
  if (isObject(payload)) return isPayload(payload, value, probe)
  // the first of its connection
  if (isObject(ct) && ct['key'] === 'state') return value === 'new'
  if (isObject(ct) && ct['key'] === 'status') return value === 'dnat' && probe.translated
  if (isObject(fib) && fib['result'] === 'type')
    return value === 'local' ? probe.oif === undefined : value === 'unicast' ? undefined : false
  return undefined
}

function isMeta(key: string, value: unknown, { iif, oif, family }: Probe): Answer {
  switch (key) {
    case 'iifname':
    case 'iif':
      return interfaceIs(iif, textOf(value), '*')
    case 'oifname':
    case 'oif':
      return interfaceIs(oif, textOf(value), '*')
    case 'nfproto':
      return value === family
    case 'l4proto':
      return value === 'tcp' || value === 6
    default:
      return undefined
  }
}

function isPayload({ protocol, field }: Fields, value: unknown, { family, port }: Probe): Answer {
  if (protocol === 'ip' || protocol === 'ip6') {
    if ((protocol === 'ip') !== (family === 'ipv4')) return false
    if (field === 'protocol' || field === 'nexthdr') return value === 'tcp' || value === 6
    const text = isObject(value) && isObject(value['prefix']) ? textOf(value['prefix']['addr']) : textOf(value)
    return (field === 'saddr' || field === 'daddr') && isSpecialNetwork(text) ? false : undefined
  }
  if (protocol !== 'tcp' && protocol !== 'th') return false
  return field === 'dport' ? portIs(value, port) : undefined
}

function portIs(value: unknown, port: number): Answer {
  if (typeof value === 'number') return value === port
  const [from, to] = (isObject(value) ? listOf(value['range']) : undefined) ?? []
  return typeof from === 'number' && typeof to === 'number' ? from <= port && port <= to : undefined
}
