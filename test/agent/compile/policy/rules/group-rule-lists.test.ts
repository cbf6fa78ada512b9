// SPDX-License-Identifier: Apache-2.0
/** Rules of one line, in rows that can be read. Layer: test. */
import { describe, expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { NO_IDENTITY, NO_IDENTITY_OF_OURS } from '#agent/compile/policy/identities/identities.ts'
import { FLOOR_BLOCKS } from '#agent/compile/policy/rules/rule-list.ts'
import { wordAt } from '#agent/compile/policy/rulesets/bits.ts'
import type { PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { formatAddr, formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { equals } from '#lib/model/selector/selector.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { fromSide, policyUpdate, toPorts } from '../../../../../testkit/policy/scale.ts'

function endpoint(addr: string, app: string, local: boolean): PolicyUpdate {
  const value = { kind: 'pod' as const, labels: new Map([['app', app]]), addrs: [parseAddr(addr)], ports: [], profiles: ['kns.x'], local }
  return { kind: 'endpoint', key: `Pod/x/${addr}`, value }
}

/** On another node. */
function pod(addr: string, app: string): PolicyUpdate {
  return endpoint(addr, app, false)
}

function localPod(addr: string, app: string): PolicyUpdate {
  return endpoint(addr, app, true)
}

function policy(name: string, ingress: readonly Rule[], of: Partial<Policy> = {}): Policy {
  return {
    kind: 'NetworkPolicy',
    namespace: 'x',
    name,
    tier: 'default',
    order: 1,
    subject: equals('app', 'web'),
    ingress,
    egress: undefined,
    staged: undefined,
    scope: 'normal',
    ...of,
  }
}

function tcp(src: string, dst: string, dport: number): Packet {
  return { src: parseAddr(src), dst: parseAddr(dst), protocol: 6, sport: 40_000, dport, icmp: undefined }
}

const WEB = '10.0.0.1'
const INGRESS = { direction: 'ingress' } as const
const fromDb = ruleOf(0, { protocols: [6], source: fromSide(equals('app', 'db')), destination: toPorts(80) })

/** Sets and identities by number of their first mention: they are hashes. */
function show(steps: readonly PolicyStep[]): string {
  const sets = new Map<string, string>([['0000000000000000', '-']])
  const identities = new Map([NO_IDENTITY, NO_IDENTITY_OF_OURS].map(({ id }) => [id, '0']))
  const setName = (id: string): string => sets.get(id) ?? (sets.set(id, `set${sets.size}`), `set${sets.size - 1}`)
  const whose = (id: number): string => identities.get(id) ?? (identities.set(id, `id${identities.size - 1}`), `id${identities.size - 2}`)
  const bits = (word: string): string => wordAt(word, 0).toString(2)
  const cells = (cell: string): string => {
    const [unknown, allow, pass, begin, ...classes] = Array.from({ length: cell.length / 8 }, (_, at) => wordAt(cell, at).toString(2))
    return `unknown ${unknown} allow ${allow} pass ${pass} begin ${begin} ports ${classes.join(' ')}`
  }
  const row = (one: PolicyRow): string => {
    switch (one.table) {
      case 'bits': {
        const { set, dimension, class: number } = one.key
        return `${setName(set)} ${['peer', 'own', 'port', 'source'][dimension]} ${dimension < 2 ? whose(number) : number}: ${bits(one.value.word)}`
      }
      case 'ports':
        return `${setName(one.key.set)} proto ${one.key.proto}: ${cells(one.value.cell)} at ${[...new Set(one.value.at)].map((at) => (at & 0x8000 ? `page ${at & 0x7fff}` : at)).join(' ')}`
      case 'pages':
        return `${setName(one.key.set)} page ${one.key.page}: ${[...new Set(one.value.class)].join(' ')}`
      case 'rules':
        return `${setName(one.key.set)} rule ${one.key.index}`
      case 'nets':
        return `${formatCidr(one.key.cidr)} is ${whose(one.value.identity)}`
      case 'ends':
        return `${formatAddr(one.key.addr)} is ${whose(one.value.identity)} in ${setName(one.value.ingress)} out ${setName(one.value.egress)}`
      case 'hosts':
        return one.key.endpoint
    }
  }
  return steps
    .map((step) => (step.kind === 'epoch' ? `epoch ${step.epoch}` : `${step.kind}\n${step.rows.map((one) => `  ${row(one)}`).join('\n')}`))
    .join('\n')
}

test('a policy is written with a pod that it selects and a pod that it names', () => {
  const compiler = new PolicyCompiler()
  const steps = compiler.change([policyUpdate(policy('a', [fromDb])), localPod(WEB, 'web'), pod('10.0.0.2', 'db')])
  expect(show(steps)).toBe(`add
  set1 proto 0: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at 0
  set1 proto 6: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at page 0 0
  set1 page 0: 0 1
  set1 rule 0
  set1 rule 1
  set1 peer id1: 11
reassign
  10.0.0.2 is id1 in - out -
switch
  10.0.0.1 is 0 in set1 out -
epoch newcomers`)
})

describe('what changes afterwards:', () => {
  const started = (): PolicyCompiler => {
    const compiler = new PolicyCompiler()
    compiler.change([policyUpdate(policy('a', [fromDb])), localPod(WEB, 'web'), pod('10.0.0.2', 'db')])
    return compiler
  }

  test('a pod whose labels are known, here or elsewhere, is one row', () => {
    const compiler = started()
    expect(show(compiler.change([pod('10.0.0.3', 'db')]))).toBe('reassign\n  10.0.0.3 is id1 in - out -\nepoch newcomers')
    expect(show(compiler.change([localPod('10.0.0.4', 'web')]))).toBe('switch\n  10.0.0.4 is 0 in set1 out -\nepoch newcomers')
  })

  test('other labels of a pod that change its own rules are one row as well', () => {
    const compiler = started()
    compiler.change([policyUpdate(policy('b', [fromDb], { subject: equals('app', 'db') }))])
    const [other] = compiler.change([localPod(WEB, 'db')]).filter(({ kind }) => kind !== 'epoch' && kind !== 'add' && kind !== 'delete')
    expect(other).toMatchObject({ kind: 'switch', rows: [{ key: { addr: parseAddr(WEB) } }] })
  })

  test('labels and rules at once: a pod that moves has a transitional identity until all have their new rules', () => {
    const compiler = started()
    const fromCache = ruleOf(0, { ...fromDb, source: fromSide(equals('app', 'cache')) })
    const steps = compiler.change([policyUpdate(policy('a', [fromCache])), pod('10.0.0.2', 'cache')])
    const shown = show(steps.filter(({ kind }) => kind === 'reassign' || kind === 'switch' || kind === 'epoch'))
    expect(shown).toBe(`reassign
  10.0.0.2 is id1 in - out -
switch
  10.0.0.1 is 0 in set1 out -
epoch next
reassign
  10.0.0.2 is id2 in - out -
epoch next`)
  })

  test('a tier that goes closes its policies, one that comes back gives them their rules again', () => {
    const compiler = new PolicyCompiler()
    const tables = new PolicyTables()
    const tier = { kind: 'Tier', namespace: '', name: 'sec', order: 10, end: 'pass' } as const
    const ask = (src: string): string => judgeByTables(tables, tcp(src, WEB, 80), INGRESS).action
    const asked = (...updates: readonly PolicyUpdate[]): readonly string[] => {
      tables.apply(compiler.change(updates))
      return [ask('10.0.0.2'), ask('10.0.0.3')]
    }
    const denies = policy('a', [{ ...fromDb, action: 'deny' }], { tier: 'sec' })
    const known = [policyUpdate(denies), localPod(WEB, 'web'), pod('10.0.0.2', 'db'), pod('10.0.0.3', 'cache')]
    expect(asked({ kind: 'tier', key: 'sec', value: tier }, ...known)).toEqual(['deny', 'allow'])
    expect(asked({ kind: 'tier', key: 'sec', value: undefined })).toEqual(['deny', 'deny'])
    expect(asked({ kind: 'tier', key: 'sec', value: tier })).toEqual(['deny', 'allow'])
  })

  test('the same again is nothing', () => {
    const compiler = started()
    expect(compiler.change([policyUpdate(policy('a', [fromDb])), localPod(WEB, 'web'), pod('10.0.0.2', 'db')])).toEqual([])
  })

  test('a policy that asks something else: both questions are answered until the last endpoint is flipped', () => {
    const compiler = started()
    const fromCache = ruleOf(0, { ...fromDb, source: fromSide(equals('app', 'cache')) })
    compiler.change([pod('10.0.0.5', 'cache')])
    expect(show(compiler.change([policyUpdate(policy('a', [fromCache]))]))).toBe(`add
  set1 proto 0: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at 0
  set1 proto 6: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at page 0 0
  set1 page 0: 0 1
  set1 rule 0
  set1 rule 1
  set1 peer id1: 11
reassign
  10.0.0.5 is id1 in - out -
switch
  10.0.0.1 is 0 in set1 out -
epoch next
reassign
  10.0.0.2 is 0 in - out -
delete
  set2 proto 0: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at 0
  set2 proto 6: unknown 10 allow 1 pass 0 begin 1 ports 10 11 at page 0 0
  set2 page 0: 0 1
  set2 rule 0
  set2 rule 1
  set2 peer id2: 11`)
  })
})

test('::/0 is not about IPv4', () => {
  const compiler = new PolicyCompiler()
  const tables = new PolicyTables()
  const fromV6 = ruleOf(0, { source: { ...ANYWHERE, nets: [parseCidr('::/0')] } })
  tables.apply(compiler.change([policyUpdate(policy('a', [fromV6])), localPod(WEB, 'web')]))
  expect(judgeByTables(tables, tcp('192.0.2.1', WEB, 80), INGRESS).action).toBe('deny')
  expect(tables.net(parseAddr('192.0.2.1'))).toBe(0)
  expect(tables.net(parseAddr('2001:db8::1'))).not.toBe(0)
})

test('lines of several blocks; what is beyond the last is denied', { timeout: 60_000 }, () => {
  const compiler = new PolicyCompiler()
  const tables = new PolicyTables()
  const rules = (count: number): readonly Rule[] =>
    Array.from({ length: count }, (_, at) =>
      ruleOf(at, {
        action: at % 2 === 0 ? 'allow' : 'deny',
        protocols: [6],

        destination: toPorts(1000 + at),
      }),
    )
  tables.apply(compiler.change([policyUpdate(policy('a', rules(17_000))), localPod(WEB, 'web')]))
  const verdict = (at: number): string => {
    const { action, rule } = judgeByTables(tables, tcp('192.0.2.1', WEB, 1000 + at), INGRESS)
    return `${rule === undefined ? '-' : (compiler.ruleName(rule) ?? '?')} ${action}`
  }
  for (const at of [0, 1, 63, 64, 1023, 1024, 3000, 16_383])
    expect(verdict(at)).toBe(`NetworkPolicy/x/a ingress ${at} ${at % 2 === 0 ? 'allow' : 'deny'}`)
  expect(verdict(16_384)).toBe('- deny')
  const cut = [{ endpoints: [`Pod/x/${WEB}`, 'Pod/x/10.0.0.4'], lines: ['ingress', 'staged ingress'] }]
  expect([compiler.change([localPod('10.0.0.4', 'web')]).length, compiler.cuts, compiler.size.truncatedRuleLists]).toEqual([2, cut, 2])
  compiler.change([policyUpdate(policy('a', rules(10)))])
  expect([compiler.cuts, compiler.size.truncatedRuleLists]).toEqual([[], 0])
})

describe('programs of old kernels look at one block', () => {
  const WEB_CUT = [{ endpoints: [`Pod/x/${WEB}`], lines: ['ingress', 'staged ingress'] }]

  test('of 1,024 rules', () => {
    const compiler = new PolicyCompiler(FLOOR_BLOCKS)
    const tables = new PolicyTables()
    const rules = (count: number): readonly Rule[] =>
      Array.from({ length: count }, (_, at) => ruleOf(at, { protocols: [6], destination: toPorts(1000 + 2 * at) }))
    const judged = (count: number): readonly unknown[] => {
      tables.apply(compiler.change([policyUpdate(policy('a', rules(count)))]))
      return [judgeByTables(tables, tcp('192.0.2.1', WEB, 1000 + 2 * (count - 1)), INGRESS).action, compiler.cuts]
    }
    tables.apply(compiler.change([localPod(WEB, 'web')]))
    expect(judged(1023)).toEqual(['allow', []])
    expect(judged(1024)).toEqual(['allow', WEB_CUT])
    expect(judged(1025)).toEqual(['deny', WEB_CUT])
  })

  test('of 15 stages: tiers, profiles and the end', () => {
    const passing = (tiers: number): PolicyCompiler => {
      const compiler = new PolicyCompiler(FLOOR_BLOCKS)
      const updates = Array.from({ length: tiers }, (_, at): readonly PolicyUpdate[] => {
        const name = `t${at}`
        return [
          { kind: 'tier', key: name, value: { kind: 'Tier', namespace: '', name, order: at, end: 'pass' } },
          policyUpdate(policy(`p${at}`, [fromDb], { tier: name })),
        ]
      })
      compiler.change([...updates.flat(), localPod(WEB, 'web')])
      return compiler
    }
    expect(passing(14).cuts).toEqual([])
    expect(passing(15).cuts).toEqual(WEB_CUT)
  })
})

test('more tiers than programs pass in one word of bits', () => {
  const compiler = new PolicyCompiler()
  const tables = new PolicyTables()
  const numbers = Array.from({ length: 30 }, (_, at) => at)
  const tiers = numbers.map((at) => {
    const name = `t${at}`
    return {
      kind: 'tier' as const,
      key: name,
      value: { kind: 'Tier' as const, namespace: '' as const, name, order: at, end: 'deny' as const },
    }
  })
  const pass = [ruleOf(0, { action: 'pass' })]
  const policies = numbers.map((at) => policyUpdate(policy(`p${at}`, at === 29 ? [fromDb] : pass, { tier: `t${at}` })))
  const steps = compiler.change([...tiers, ...policies, localPod(WEB, 'web'), pod('10.0.0.2', 'db')])
  tables.apply(steps)
  const { action, passed } = judgeByTables(tables, tcp('10.0.0.2', WEB, 80), INGRESS)
  expect([action, passed.length]).toEqual(['allow', 29])
  const rows = steps.flatMap((step) => (step.kind === 'epoch' ? [] : step.rows)).filter(({ table }) => table === 'rules')
  expect(rows.length, 'no rows for what fills a block up').toBeLessThan(100)
  expect(judgeByTables(tables, tcp('10.0.0.3', WEB, 80), INGRESS).action).toBe('deny')
})

test('a pass goes on in another block', { timeout: 60_000 }, () => {
  const compiler = new PolicyCompiler()
  const tables = new PolicyTables()
  const first = [
    ruleOf(0, { action: 'pass', protocols: [6], destination: toPorts(80) }),
    ...Array.from({ length: 3000 }, (_, at) => ruleOf(at + 1, { action: 'deny', protocols: [17], destination: toPorts(1 + at) })),
  ]
  tables.apply(
    compiler.change([
      { kind: 'tier', key: 'early', value: { kind: 'Tier', namespace: '', name: 'early', order: 1, end: 'deny' } },
      policyUpdate(policy('first', first, { tier: 'early' })),
      policyUpdate(policy('second', [fromDb])),
      localPod(WEB, 'web'),
      pod('10.0.0.2', 'db'),
    ]),
  )
  const { action, rule, passed } = judgeByTables(tables, tcp('10.0.0.2', WEB, 80), INGRESS)
  expect([action, ...[...passed, rule ?? 0].map((number) => compiler.ruleName(number))]).toEqual([
    'allow',
    'NetworkPolicy/x/first ingress 0',
    'NetworkPolicy/x/second ingress 0',
  ])
  expect(judgeByTables(tables, tcp('10.0.0.2', WEB, 81), INGRESS).action).toBe('deny')
})
