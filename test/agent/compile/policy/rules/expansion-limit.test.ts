// SPDX-License-Identifier: Apache-2.0
/** What a few kilobytes of policy multiply to is made as far as it counts. Layer: test. */
import { describe, expect, test } from 'vitest'
import { judgeByTables } from '#agent/policy/judge.ts'
import { parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { NamedPort, Policy, Rule } from '#lib/model/policy.ts'
import { ALL, equals } from '#lib/model/selector/selector.ts'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { policyUpdate } from '../../../../../testkit/policy/scale.ts'

const MANY = Array.from({ length: 1000 }, (_, at) => at)
/** As long as the agent may be away from everything else. */
const MOST_MS = 1500

function policyOf(ingress: readonly Rule[], egress?: readonly Rule[]): Policy {
  const of = { kind: 'NetworkPolicy', namespace: 'x', name: 'a', tier: 'default', order: 1, staged: undefined, scope: 'normal' } as const
  return { ...of, subject: equals('app', 'web'), ingress, egress }
}

function webPod(ports: readonly NamedPort[]): PolicyUpdate {
  const value = {
    kind: 'pod' as const,
    labels: new Map([['app', 'web']]),
    addrs: [parseAddr('10.0.0.1')],
    profiles: ['kns.x'],
    local: true,
    ports,
  }
  return { kind: 'endpoint', key: 'Pod/x/web', value }
}

const peers = MANY.map((at) => ({ ...ANYWHERE, nets: [parseCidr(`100.64.${at >> 8}.${at & 255}/32`)] }))
const named = (at: number): NamedPort => ({ name: `p${at}`, protocol: 6, port: parsePort(1000 + at) })
const names = MANY.map((at) => ({ name: `p${at}` }))
const others = MANY.map((at) => ({ name: `q${at}` }))

/** Allowed or not: a packet from the peer of that number to that port. */
function judged({ policy, ports }: { readonly policy: Policy; readonly ports: readonly NamedPort[] }) {
  const compiler = new PolicyCompiler()
  const tables = new PolicyTables()
  const { user, system } = process.threadCpuUsage()
  tables.apply(compiler.change([policyUpdate(policy), webPod(ports)]))
  const after = process.threadCpuUsage()
  const verdict = (peer: number, dport: number): string => {
    const src = parseAddr(`100.64.${peer >> 8}.${peer & 255}`)
    const packet = { src, dst: parseAddr('10.0.0.1'), protocol: 6, sport: 40_000, dport, icmp: undefined }
    return judgeByTables(tables, packet, { direction: 'ingress' }).action
  }
  return { verdict, cut: compiler.cuts.flatMap(({ lines }) => lines), ms: (after.user + after.system - user - system) / 1000 }
}

const CUT = ['ingress', 'staged ingress']
const crossed = peers.map((source) => ruleOf(0, { protocols: [6], source, destination: { ...ANYWHERE, ports: names } }))

test('peers times names of ports', { timeout: 600_000 }, () => {
  const { verdict, cut, ms } = judged({ policy: policyOf(crossed), ports: MANY.map(named) })
  console.log(`1,000 peers, 1,000 names: ${ms.toFixed(0)} ms`)
  expect(ms).toBeLessThan(MOST_MS)
  expect([verdict(0, 1000), verdict(16, 1383), verdict(16, 1384), verdict(900, 1000), cut]).toEqual(['allow', 'allow', 'deny', 'deny', CUT])
})

test('a rule list that is no longer than programs look is not truncated', () => {
  const { verdict, cut } = judged({ policy: policyOf(crossed), ports: MANY.slice(0, 16).map(named) })
  expect([verdict(999, 1015), verdict(999, 1016), cut]).toEqual(['allow', 'deny', []])
})

describe('what leads to no rule is bounded as well, and what comes later denied', () => {
  const pairs = (of: Partial<Rule>): readonly Rule[] => [
    ruleOf(0, { protocols: [6], source: peers[0] ?? ANYWHERE }),
    ...MANY.map((at) => ruleOf(1 + at, of)),
    ruleOf(MANY.length + 1, { protocols: [6], source: peers[1] ?? ANYWHERE }),
  ]
  test.each([
    ['names of ports that are no others', { destination: { ...ANYWHERE, selector: ALL, ports: names, notPorts: names } }],
    ['source ports of another protocol', { source: { ...ANYWHERE, ports: others }, destination: { ...ANYWHERE, ports: names } }],
    ['names of ports that no pod has', { destination: { ...ANYWHERE, selector: equals('no', 'body'), ports: names } }],
    [
      'a long list of prefixes with each of them',
      { source: { ...ANYWHERE, nets: peers.flatMap(({ nets }) => nets) }, destination: { ...ANYWHERE, ports: names } },
    ],
  ] satisfies [string, Partial<Rule>][])('%s', { timeout: 600_000 }, (what, of) => {
    const ports = [...MANY.map(named), ...MANY.map((at): NamedPort => ({ name: `q${at}`, protocol: 17, port: parsePort(1000 + at) }))]
    const { verdict, cut, ms } = judged({ policy: policyOf(pairs(of)), ports })
    console.log(`${what}: ${ms.toFixed(0)} ms`)
    expect(ms).toBeLessThan(MOST_MS)
    expect([verdict(0, 80), verdict(1, 80), cut]).toEqual(['allow', 'deny', CUT])
  })
})
