// SPDX-License-Identifier: Apache-2.0
/** The output of `iptables-save -t filter` as rules that can be walked. Layer: agent/node (pure). */
import {
  all,
  any,
  interfaceIs,
  isSpecialNetwork,
  not,
  type Action,
  type Chain,
  type Hook,
  type Match,
  type Rule,
  type RuleSet,
} from './evaluate.ts'

const HOOKS: ReadonlyMap<string, Hook> = new Map([
  ['INPUT', 'input'],
  ['FORWARD', 'forward'],
  ['OUTPUT', 'output'],
])
/** Targets that let the packet go on. */
const PASSING = new Set(['LOG', 'NFLOG', 'MARK', 'CONNMARK', 'SECMARK', 'CONNSECMARK', 'TRACE', 'AUDIT', 'TCPMSS', 'CHECKSUM', 'SET', 'CT'])

export interface SavedRules {
  /** "iptables-nft" */
  readonly tool: string
  readonly family: 'ipv4' | 'ipv6'
  readonly saved: string
}

/** undefined: the output has no table filter. */
export function iptablesRules({ tool, family, saved }: SavedRules): RuleSet | undefined {
  const section = /^\*filter$([\s\S]*?)^COMMIT$/m.exec(saved)?.[1]
  if (section === undefined) return undefined
  const chains = new Map<string, Chain & { readonly rules: Rule[] }>()
  for (const [, name = '', policy] of section.matchAll(/^:(\S+) (\S+)/gm)) {
    const hook = HOOKS.get(name)
    chains.set(name, { name, rules: [], base: hook === undefined ? undefined : { hook, drops: policy === 'DROP' } })
  }
  for (const [, name = '', words = ''] of section.matchAll(/^-A (\S+) ?(.*)$/gm))
    chains.get(name)?.rules.push(ruleOf(wordsOf(words), chains))
  return { name: `${tool} filter`, families: [family], chains }
}

function wordsOf(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}

/** By option: how many words follow, and what they ask; no match: nothing that matters. */
const OPTIONS: Readonly<Record<string, (value: string) => Match | undefined>> = {
  '-m': () => undefined,
  '--comment': () => undefined,
  '-p': (value) => () => value === 'tcp' || value === 'all' || value === '0' || value === '6',
  '-i':
    (value) =>
    ({ iif }) =>
      interfaceIs(iif, value, '+'),
  '-o':
    (value) =>
    ({ oif }) =>
      interfaceIs(oif, value, '+'),
  '-s': addressMatch,
  '-d': addressMatch,
  '--dport':
    (value) =>
    ({ port }) =>
      portIn(value, port),
  '--dports':
    (value) =>
    ({ port }) =>
      any(value.split(',').map((one) => portIn(one, port))),
  '--ctstate': stateMatch,
  '--state': stateMatch,
  '--tcp-flags': () => () => undefined,
  '--dst-type':
    (value) =>
    ({ oif }) =>
      value === 'LOCAL' ? oif === undefined : value === 'UNICAST' ? undefined : false,
}

function addressMatch(value: string): Match {
  return () => (isSpecialNetwork(value) ? false : /\/0$/.test(value) ? true : undefined)
}

function stateMatch(value: string): Match {
  const states = value.split(',')
  return ({ translated }) => states.includes('NEW') || (translated && states.includes('DNAT'))
}

function portIn(range: string, port: number): boolean {
  const [from = '', to = from] = range.split(':')
  return Number(from === '' ? 0 : from) <= port && port <= Number(to === '' ? 65535 : to)
}

function ruleOf(words: readonly string[], chains: ReadonlyMap<string, unknown>): Rule {
  const matches: Match[] = []
  let action: Action = { kind: 'none' }
  let negated = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const value = words[at + 1] ?? ''
    if (word === '!') {
      negated = true
      continue
    }
    if (word === '-j' || word === '-g') {
      action = actionOf(word, value, chains)
      // what follows are options of the target
      break
    }
    const option = OPTIONS[word]
    const match = option === undefined ? () => undefined : option(value)
    if (match !== undefined) matches.push(negated ? (probe) => not(match(probe)) : match)
    negated = false
    at += option === undefined ? followers(words, at) : 1
  }
  return { matches: [(probe) => all(matches.map((match) => match(probe)))], action }
}

/** Words up to the next option. */
function followers(words: readonly string[], at: number): number {
  const next = words.findIndex((word, index) => index > at && (word.startsWith('-') || word === '!'))
  return (next < 0 ? words.length : next) - at - 1
}

function actionOf(how: '-j' | '-g', target: string, chains: ReadonlyMap<string, unknown>): Action {
  if (chains.has(target)) return { kind: how === '-j' ? 'jump' : 'goto', chain: target }
  switch (target) {
    case 'ACCEPT':
      return { kind: 'accept' }
    case 'DROP':
    case 'REJECT':
      return { kind: 'drop' }
    case 'RETURN':
      return { kind: 'return' }
    default:
      // what another program decides may be to accept
      return PASSING.has(target) ? { kind: 'none' } : { kind: 'choose', of: [[() => undefined, { kind: 'accept' }]] }
  }
}
