// SPDX-License-Identifier: Apache-2.0
/** Policies to be measured: each has a pod of its own, to which flows come that its last rules let in. Layer: bench. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { addrBytes, addrFromBytes, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { and, equals } from '#lib/model/selector/selector.ts'
import { refText } from '#lib/model/ref.ts'
import type { Family } from '../../testkit/packets/cluster.ts'

/** the service port of every flow */
export const PORT = 80
/** senders that flows come from: as many differ in what rules ask */
const SENDERS = 30
const MANY = 1000

export interface PolicySubject {
  /** "policy.selector.10"; undefined: no rules */
  readonly id: string | undefined
  readonly to: Addr
  readonly enters: 'from_workload' | 'from_host'
  readonly note: string
}

interface Kind {
  readonly id: string
  readonly enters: PolicySubject['enters']
  readonly note: string
  readonly rules: (f: Family) => readonly Partial<Rule>[]
}

const toPort = (from: number, to = from): Rule['destination'] => ({ ...ANYWHERE, ports: [{ from, to }] })
const many = (count: number, rule: (at: number) => Partial<Rule>): readonly Partial<Rule>[] =>
  Array.from({ length: count }, (_, at) => rule(at))

function selectors(count: number): Kind {
  const rule = (at: number): Partial<Rule> => ({ source: { ...ANYWHERE, selector: equals(`of${count}`, String(at)) } })
  const note = `${count} rules with a selector each, from pods that the last ones find`
  return { id: `policy.selector.${count}`, enters: 'from_workload', note, rules: () => many(count, rule) }
}

const KINDS: readonly Kind[] = [
  ...[1, 10, 100, MANY].map(selectors),
  {
    id: `policy.overlap.${MANY}`,
    enters: 'from_workload',
    note: 'selectors that overlap, each with a range of ports that does; the last holds',
    rules: () =>
      many(MANY, (at) => {
        if (at === MANY - 1) return { source: { ...ANYWHERE, selector: equals('all', '1') } }
        const from = (at * 7919) % 60_000
        // every third range has the port: the selectors of those find no sender
        const range = at % 3 === 0 ? toPort(at % PORT, PORT + at) : toPort(1000 + from, 1001 + from + ((at * 104_729) % 5000))
        const found = at % 3 === 0 ? and(equals('all', '1'), equals('group', `g${at % 7}`)) : equals('group', `h${at % 11}`)
        return {
          action: at % 2 === 0 ? 'allow' : 'deny',
          protocols: [at % 5 === 0 ? 17 : 6],
          source: { ...ANYWHERE, selector: found },
          destination: range,
        }
      }),
  },
  {
    id: `policy.port.${MANY}`,
    enters: 'from_workload',
    note: '1,000 rules with a port each; the last holds',
    rules: () => many(MANY, (at) => ({ protocols: [6], destination: toPort(at === MANY - 1 ? PORT : 1000 + 3 * at) })),
  },
  {
    id: `policy.cidr.${MANY}`,
    enters: 'from_host',
    note: '1,000 rules with a prefix each, from outside, by the last ones',
    rules: (f) => many(MANY, (at) => ({ source: { ...ANYWHERE, nets: [parseCidr(netOf(f, at))] } })),
  },
  {
    id: 'policy.stranger.1',
    enters: 'from_host',
    note: 'one rule that asks about no address, from outside',
    rules: () => [{ protocols: [6], destination: toPort(PORT) }],
  },
]

function netOf(f: Family, at: number): string {
  const last = at - (MANY - SENDERS)
  if (last >= 0) return f.v4 ? `192.168.60.${last + 1}/32` : `fd00:60::${(last + 1).toString(16)}/128`
  return f.v4 ? `10.${128 + (at >> 8)}.${at & 255}.0/24` : `fd01:${at.toString(16)}::/32`
}

/** Address of the pod that has the policies of a kind; the first has none. */
function destination(f: Family, at: number): Addr {
  return parseAddr(f.v4 ? `10.10.1.${100 + at}` : `fd00:10:1::${(0x100 + at).toString(16)}`)
}

function senderAddr(first: string, at: number): Addr {
  const bytes = Buffer.from(addrBytes(parseAddr(first)))
  bytes.writeUInt32BE(bytes.readUInt32BE(12) + at, 12)
  return addrFromBytes(bytes)
}

export interface PolicyWorld {
  readonly steps: readonly PolicyStep[]
  readonly subjects: readonly PolicySubject[]
  /** what compiling it took */
  readonly compileMs: number
}

/** `first`: address of the first sender. */
export function policyWorld(f: Family, first: string): PolicyWorld {
  const began = performance.now()
  const steps = new PolicyCompiler().change(updatesOf(f, first))
  const none = (enters: PolicySubject['enters']): PolicySubject => ({ id: undefined, to: destination(f, 0), enters, note: 'no rules' })
  return {
    steps,
    compileMs: performance.now() - began,
    subjects: [
      none('from_workload'),
      none('from_host'),
      ...KINDS.map(({ id, enters, note }, at) => ({ id: `${id}${f.v4 ? '' : '.v6'}`, to: destination(f, at + 1), enters, note })),
    ],
  }
}

function updatesOf(f: Family, first: string): readonly PolicyUpdate[] {
  const policies = KINDS.map(({ rules }, at) => policyOf(`p${at + 1}`, rules(f)))
  const end = (key: string, addr: Addr, labels: ReadonlyMap<string, string>): PolicyUpdate => ({
    kind: 'endpoint',
    key,
    value: { kind: 'pod', labels, addrs: [addr], ports: [], profiles: ['kns.bench'], local: true },
  })
  return [
    ...policies.map((value) => ({ kind: 'policy' as const, key: refText(value), value })),
    ...many(KINDS.length + 1, () => ({})).map((_, at) => end(`Pod/to${at}`, destination(f, at), new Map([['name', `p${at}`]]))),
    // pods beside the senders that other rules mean, so that there is a row for each
    ...many(MANY, () => ({})).map((_, at) => end(`Pod/from${at}`, senderAddr(first, at), senderLabels(at))),
  ]
}

function senderLabels(at: number): ReadonlyMap<string, string> {
  const last = (count: number): [string, string] => [`of${count}`, String(count - 1 - (at % count))]
  return new Map([
    last(1),
    last(10),
    last(100),
    last(MANY),
    ['all', '1'],
    ['group', at < SENDERS ? 'none' : `${at % 2 === 0 ? 'g' : 'h'}${at % 11}`],
  ])
}

function policyOf(name: string, rules: readonly Partial<Rule>[]): Policy {
  return {
    kind: 'GlobalNetworkPolicy',
    namespace: '',
    name,
    tier: 'default',
    order: 1,
    subject: equals('name', name),
    ingress: rules.map((rule, at) => ruleOf(at, rule)),
    egress: undefined,
    staged: undefined,
    scope: 'normal',
  }
}
