// SPDX-License-Identifier: Apache-2.0
/** Versions of policies at random, of which each says the same of marked flows. Layer: soak (pure). */
import { DIRECTIONS, type Direction } from '#lib/model/policy.ts'
import { addressOf, FAMILIES } from '../../testkit/lab/manifests.ts'
import { ALWAYS, NEVER, NEVER_ECHO, PAIR, type Truth, type Truths } from '../marks/marked-flows.ts'
import type { Random } from '../random.ts'

const V3 = 'netplane.io/v3'
const TIERS = ['first', 'second', 'default'] as const
const HUES = ['red', 'green', 'blue'] as const
const PROTOCOLS = ['TCP', 'UDP'] as const

/** Where each truth is written. */
export const TURNED_BY = { rules: 'policies', egress: 'policies', peer: 'labels', gate: 'labels', net: 'sets' } as const satisfies Record<
  Truth,
  string
>

type Action = 'Allow' | 'Deny'

/** What is always so of some flows. No two facts are about one flow, so they may stand in any order and tier; of a
 * fact with several parts the first that is about a flow counts, so these stay together. */
interface Fact {
  readonly name: string
  /** of pods by their label `who`, with more to ask of them */
  readonly subject: string
  readonly direction: Direction
  readonly kind?: 'NetworkPolicy'
  readonly parts: readonly Part[]
}

interface Part {
  readonly action: Action
  /** selector of the other end; empty: anyone */
  readonly peer: string
  readonly ports: readonly number[]
}

const is = (who: string): string => `who == '${who}'`
const act = (allowed: boolean): Action => (allowed ? 'Allow' : 'Deny')

function facts({ rules, egress }: Truths): Fact[] {
  const ingress = (name: string, subject: string, parts: readonly Part[]): Fact => ({ name, subject, direction: 'ingress', parts })
  const own = (name: string, subject: string, parts: readonly Part[]): Fact => ({ ...ingress(name, subject, parts), kind: 'NetworkPolicy' })
  return [
    ingress('never', 'all()', [{ action: 'Deny', peer: '', ports: [NEVER_ECHO, ...NEVER] }]),
    ingress('always', `who in { 'b-4', 'c-4' }`, [{ action: 'Allow', peer: '', ports: ALWAYS }]),
    ingress('rules', is('b-4'), [{ action: act(rules), peer: is('a-4'), ports: PAIR }]),
    ingress('peer-yes', is('b-4'), [{ action: 'Allow', peer: `${is('b-5')} && mark == 'yes'`, ports: PAIR }]),
    ingress('peer-no', is('b-4'), [{ action: 'Deny', peer: `${is('b-5')} && mark != 'yes'`, ports: PAIR }]),
    ingress('net', is('b-4'), [
      { action: 'Allow', peer: `net == 'friend'`, ports: PAIR },
      { action: 'Deny', peer: is('a-6'), ports: PAIR },
    ]),
    own('gate-open', `${is('c-4')} && gate == 'open'`, [{ action: 'Allow', peer: is('a-4'), ports: PAIR }]),
    own('gate-closed', `${is('c-4')} && gate == 'closed'`, [{ action: 'Deny', peer: is('a-4'), ports: PAIR }]),
    { name: 'egress', subject: is('c-5'), direction: 'egress', parts: [{ action: act(egress), peer: is('a-5'), ports: PAIR }] },
  ]
}

/** Tiers and policies, real ones and staged. What no fact is about is allowed. */
export function policyObjects(random: Random, truths: Truths): object[] {
  return [
    ...['first', 'second'].map((name) => object('Tier', name, { order: 100 + random.below(100), defaultAction: 'Pass' })),
    ...facts(truths).flatMap((fact) => factObjects(random, fact)),
    rest(random),
    ...Array.from({ length: random.below(4) }, (_, at) => noisePolicy(random, at)),
    ...Array.from({ length: random.below(3) }, (_, at) => staged(random, at)),
    ...random.some(adminPolicies(random)),
  ]
}

/** All in one policy, or in one for each port. Their names are the same in every version: what leaves a directory is
 * believed only after a moment, so that a policy that is replaced by one of another name is in force beside it for
 * so long. */
function factObjects(random: Random, fact: Fact): object[] {
  const ports = [...new Set(fact.parts.flatMap((part) => part.ports))]
  const groups = random.chance(0.2) ? ports.map((port) => [port]) : ports.map((_, at) => (at === 0 ? ports : []))
  return groups.map((group, at) => {
    const rules = group.length === 0 ? [] : fact.parts.flatMap((part) => partRules(random, { ...part, ports: group }, fact.direction))
    return v3Policy(random, { name: `${fact.name}-${at}`, selector: fact.subject, direction: fact.direction, rules, kind: fact.kind })
  })
}

interface PolicyText {
  readonly name: string
  readonly selector: string
  readonly direction: Direction
  readonly rules: readonly object[]
  readonly kind?: Fact['kind'] | undefined
}

function v3Policy(random: Random, { name, selector, direction, rules, kind }: PolicyText): object {
  const noise = Array.from({ length: random.below(3) }, () => noiseRule(random))
  const spec = {
    tier: random.pick(TIERS),
    order: random.below(900),
    selector,
    types: [direction === 'ingress' ? 'Ingress' : 'Egress'],
    [direction]: [...noise, ...rules],
  }
  return object(kind ?? 'GlobalNetworkPolicy', name, spec)
}

function partRules(random: Random, { action, peer, ports }: Part, direction: Direction): object[] {
  const side = peer === '' ? {} : { selector: peer }
  const rule = (protocol: string, said: readonly (number | string)[]): object => {
    const [source, destination] = direction === 'ingress' ? [side, { ports: said }] : [{}, { ...side, ports: said }]
    return { action, protocol, source, destination }
  }
  const forms = random.pick(['together', 'apart', 'range'] as const)
  return PROTOCOLS.flatMap((protocol) => {
    if (forms === 'apart') return ports.map((port) => rule(protocol, [port]))
    return [rule(protocol, forms === 'range' ? ranges(ports) : ports)]
  })
}

/** "9001:9002" for neighbours. */
function ranges(ports: readonly number[]): (number | string)[] {
  const [first = 0, second] = ports
  return ports.length === 2 && second === first + 1 ? [`${first}:${second}`] : [...ports]
}

/** A rule for ports that no flow uses. */
function noiseRule(random: Random): object {
  const peer = random.pick([{}, { selector: `hue == '${random.pick(HUES)}'` }, { selector: `net == 'noise'` }, { nets: ['10.29.0.0/16'] }])
  const port = 7000 + random.below(900)
  const said = random.pick([[port], [`${port}:${port + 50}`], [port, 6000 + random.below(900)]])
  return {
    action: random.pick(['Allow', 'Deny', 'Pass']),
    protocol: random.pick(PROTOCOLS),
    source: peer,
    destination: { ports: said },
  }
}

function noisePolicy(random: Random, at: number): object {
  const selector = random.pick(['all()', `hue == '${random.pick(HUES)}'`, `has(hue)`, `who starts with 'a'`])
  const direction = random.pick(DIRECTIONS)
  return v3Policy(random, { name: `noise-${at}`, selector, direction, rules: [noiseRule(random)] })
}

/** What no other rule is about is allowed: by one rule, by two that are about everyone together, or by Kubernetes'
 * own kind. */
function rest(random: Random): object {
  const kind = random.pick(['one', 'two', 'kubernetes'] as const)
  if (kind === 'kubernetes')
    return {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'rest', namespace: 'default' },
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{}], egress: [{}] },
    }
  const selector = `hue == '${random.pick(HUES)}'`
  const of = (side: 'source' | 'destination'): object[] =>
    kind === 'one'
      ? [{ action: 'Allow' }]
      : [
          { action: 'Allow', [side]: { selector } },
          { action: 'Allow', [side]: { notSelector: selector } },
        ]
  const spec = { order: 1000, selector: 'all()', types: ['Ingress', 'Egress'], ingress: of('source'), egress: of('destination') }
  return object('GlobalNetworkPolicy', 'rest', spec)
}

/** What is so anyway, and what no packet comes to. */
function adminPolicies(random: Random): object[] {
  const policy = (name: string, tier: string, rule: object): object => ({
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    metadata: { name },
    spec: { tier, priority: random.below(1000), subject: { namespaces: {} }, ingress: [{ from: [{ namespaces: {} }], ...rule }] },
  })
  const always = { udp: { destinationPort: { range: { start: ALWAYS[0], end: ALWAYS[1] } } } }
  return [
    policy('always', 'Admin', { action: random.pick(['Accept', 'Pass']), protocols: [always] }),
    policy('last', 'Baseline', { action: 'Deny' }),
  ]
}

/** Things would be quite otherwise. */
function staged(random: Random, at: number): object {
  const direction = random.pick(DIRECTIONS)
  const rules = [{ action: random.pick(['Allow', 'Deny']) }]
  const spec = {
    order: random.below(900),
    selector: random.pick(['all()', is('b-4'), is('c-4'), is('c-5')]),
    types: [direction === 'ingress' ? 'Ingress' : 'Egress'],
    [direction]: rules,
  }
  return object('StagedGlobalNetworkPolicy', at === 0 ? 'rules-0' : `staged-${at}`, spec)
}

/** Network sets: the one that pairs depend on, and others about the same addresses. */
export function setObjects(random: Random, { net }: Truths): object[] {
  const friends = FAMILIES.map((family) => `${addressOf('a-6', family)}/${family === 4 ? 32 : 128}`)
  const strangers = random.some(['198.51.100.0/24', '203.0.113.0/28', '2001:db8:113::/64'])
  const noise = random.some([
    '10.29.1.0/24',
    '10.29.0.0/16',
    '10.29.2.4/32',
    'fd00:2900:1::/64',
    '172.29.0.0/16',
    '0.0.0.0/0',
    'fd00:2900:2::/63',
  ])
  return [
    set('friends', [...(net ? friends : []), ...strangers], { net: 'friend' }),
    set('noise', noise, { net: 'noise', hue: random.pick(HUES) }),
  ]
}

/** Labels of pods that are not only their names. */
export function podLabels(random: Random, pods: readonly string[], { peer, gate }: Truths): Readonly<Record<string, object>> {
  const of = (pod: string): object => ({
    ...(random.chance(0.6) ? { hue: random.pick(HUES) } : {}),
    ...(pod === 'b-5' ? { mark: peer ? 'yes' : 'no' } : {}),
    ...(pod === 'c-4' ? { gate: gate ? 'open' : 'closed' } : {}),
  })
  return Object.fromEntries(pods.map((pod) => [pod, of(pod)]))
}

function set(name: string, nets: readonly string[], labels: object): object {
  return { apiVersion: V3, kind: 'GlobalNetworkSet', metadata: { name, labels }, spec: { nets } }
}

function object(kind: string, name: string, spec: object): object {
  const namespace = kind === 'NetworkPolicy' ? { namespace: 'default' } : {}
  return { apiVersion: V3, kind, metadata: { name, ...namespace }, spec }
}
