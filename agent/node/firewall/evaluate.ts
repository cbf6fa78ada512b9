// SPDX-License-Identifier: Apache-2.0
/** What becomes of a packet in another program's rules, as far as these can be understood. Layer: agent/node (pure). */

/** The first packet of a connection. A rule that asks about any other field cannot be decided. */
export interface Probe {
  readonly hook: Hook
  readonly family: 'ipv4' | 'ipv6'
  /** undefined: it comes from the node itself */
  readonly iif: string | undefined
  /** undefined: it is for the node itself */
  readonly oif: string | undefined
  readonly port: number
  /** another program has changed its destination */
  readonly translated: boolean
}

export type Hook = 'input' | 'forward' | 'output'

/** undefined: perhaps */
export type Answer = boolean | undefined
export type Match = (probe: Probe) => Answer

export type Action =
  | { readonly kind: 'accept' | 'drop' | 'return' | 'none' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  /** the action depends on the packet: the first that fits, undefined: none does */
  | { readonly kind: 'choose'; readonly of: readonly (readonly [Match, Action])[] }

export interface Rule {
  readonly matches: readonly Match[]
  readonly action: Action
}

export interface Chain {
  readonly name: string
  readonly rules: readonly Rule[]
  /** undefined: not a base chain */
  readonly base: { readonly hook: Hook; readonly drops: boolean } | undefined
}

/** One table of one program. */
export interface RuleSet {
  /** "iptables filter", "nft inet firewalld" */
  readonly name: string
  readonly families: readonly Probe['family'][]
  readonly chains: ReadonlyMap<string, Chain>
}

export interface Dropped {
  /** the chain whose rule or policy it is */
  readonly chain: string
  readonly by: 'rule' | 'policy'
}

type Verdict = { readonly kind: 'accept' | 'through' | 'unknown' } | ({ readonly kind: 'drop' } & Dropped)

/** A set of rules may lead in circles no more than the kernel lets it. */
const DEEPEST = 16

/** The chain that certainly drops the packet; undefined: none does, or it cannot be told. */
export function droppedBy(rules: RuleSet, probe: Probe): Dropped | undefined {
  if (!rules.families.includes(probe.family)) return undefined
  for (const { name, base } of rules.chains.values()) {
    if (base?.hook !== probe.hook) continue
    const verdict = walk(rules, { name, probe, depth: 0 })
    if (verdict.kind === 'drop') return verdict
    if (verdict.kind === 'through' && base.drops) return { chain: name, by: 'policy' }
  }
  return undefined
}

function walk(rules: RuleSet, at: At): Verdict {
  const { name, probe, depth } = at
  if (depth > DEEPEST) return { kind: 'unknown' }
  // true once an earlier rule may have let the packet pass
  let doubt = false
  for (const { matches, action } of rules.chains.get(name)?.rules ?? []) {
    const applies = all(matches.map((match) => match(probe)))
    if (applies === false) continue
    const { verdict, certain, leaves } = act(rules, action, at)
    const isCertain = applies === true && certain
    if (verdict.kind === 'through' && !leaves) continue
    if (!isCertain || verdict.kind === 'unknown') doubt ||= verdict.kind !== 'drop'
    else return doubt && verdict.kind !== 'accept' ? { kind: 'unknown' } : verdict
  }
  return { kind: doubt ? 'unknown' : 'through' }
}

interface At {
  readonly name: string
  readonly probe: Probe
  readonly depth: number
}

/** `leaves`: the chain ends here, also where nothing was decided. */
function act(rules: RuleSet, action: Action, at: At): { readonly verdict: Verdict; readonly certain: boolean; readonly leaves: boolean } {
  switch (action.kind) {
    case 'accept':
      return { verdict: { kind: 'accept' }, certain: true, leaves: true }
    case 'drop':
      return { verdict: { kind: 'drop', chain: at.name, by: 'rule' }, certain: true, leaves: true }
    case 'return':
      return { verdict: { kind: 'through' }, certain: true, leaves: true }
    case 'none':
      return { verdict: { kind: 'through' }, certain: true, leaves: false }
    case 'jump':
    case 'goto':
      return {
        verdict: walk(rules, { name: action.chain, probe: at.probe, depth: at.depth + 1 }),
        certain: true,
        leaves: action.kind === 'goto',
      }
    case 'choose': {
      let certain = true
      for (const [match, next] of action.of) {
        const fits = match(at.probe)
        if (fits === false) continue
        certain &&= fits === true
        const { verdict, leaves, ...rest } = act(rules, next, at)
        return { verdict, leaves, certain: certain && rest.certain }
      }
      return { verdict: { kind: 'through' }, certain: true, leaves: false }
    }
  }
}

/** True when all are, false when one is not. */
export function all(answers: readonly Answer[]): Answer {
  if (answers.includes(false)) return false
  return answers.includes(undefined) ? undefined : true
}

export function any(answers: readonly Answer[]): Answer {
  if (answers.includes(true)) return true
  return answers.includes(undefined) ? undefined : false
}

export function not(answer: Answer): Answer {
  return answer === undefined ? undefined : !answer
}

/** Whether an interface of the packet has a name; one that a packet does not have fits nothing. */
export function interfaceIs(actual: string | undefined, wanted: string, wildcard: '+' | '*'): boolean {
  if (actual === undefined) return false
  return wanted.endsWith(wildcard) ? actual.startsWith(wanted.slice(0, -1)) : actual === wanted
}

/** Packets of pods and nodes are none of loopback, multicast or of one link. */
export function isSpecialNetwork(text: string): boolean {
  return /^(127\.|22[4-9]\.|23\d\.|255\.255\.255\.255|169\.254\.|::1(\/128)?$|f[ef][89ab0-9a-f][0-9a-f]:)/i.test(text)
}
