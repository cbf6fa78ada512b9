// SPDX-License-Identifier: Apache-2.0
/** Objects for kernels before 5.6 look at one block of a line: what the compiler makes for them they judge as the
 * tables say. Layer: test. */
import { ruleOf } from '#lib/model/policy.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { FLOOR_BLOCKS } from '#agent/compile/policy/rules/rule-list.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { parseAddr } from '#lib/base/ip.ts'
import type { Policy, Rule } from '#lib/model/policy.ts'
import { ALL } from '#lib/model/selector/selector.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { policyUpdate, toPorts } from '../../../testkit/policy/scale.ts'
import { PolicyPrograms } from '../../support/policy-programs.ts'
import { testCfg } from '../../../testkit/packets/runner.ts'

const WEB = parseAddr('10.1.1.5')
const CLIENT = parseAddr('192.0.2.9')
const FLOOR = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }

const loaded: PolicyPrograms[] = []
beforeAll(async () => {
  loaded.push(await PolicyPrograms.load({ ...testCfg(FLOOR), source_check: 0, overlay: 0, stray_service: 0, dsr: 0 }))
})
afterAll(() => loaded.forEach((programs) => programs.close()))

function policy(name: string, tier: string, ingress: readonly Rule[]): PolicyUpdate {
  const of = {
    kind: 'GlobalNetworkPolicy',
    namespace: '',
    order: 1,
    subject: ALL,
    egress: undefined,
    staged: undefined,
    scope: 'normal',
  } as const
  const value: Policy = { ...of, name, tier, ingress }
  return policyUpdate(value)
}

const local: PolicyUpdate = {
  kind: 'endpoint',
  key: 'Pod/x/web',
  value: { kind: 'pod', labels: new Map(), addrs: [WEB], ports: [], profiles: ['kns.x'], local: true },
}

/** By programs and tables, which must agree. */
async function judged(updates: readonly PolicyUpdate[], dport: number): Promise<string> {
  const [programs] = loaded
  if (programs === undefined) throw new Error('not loaded')
  await programs.clear()
  const tables = new PolicyTables()
  const compiler = new PolicyCompiler(FLOOR_BLOCKS)
  const steps = compiler.change([...updates, local])
  tables.apply(steps)
  programs.take(steps)
  const packet: Packet = { src: CLIENT, dst: WEB, protocol: 6, sport: 40_000, dport, icmp: undefined }
  const { action, ingress } = programs.ask({ packet, through: 'from_host', local: [WEB] })
  const wanted = judgeByTables(tables, packet, { direction: 'ingress' })
  expect([action, ingress]).toEqual([wanted.action, wanted.rule ?? 0])
  return `${action}${compiler.cuts.length > 0 ? ', cut' : ''}`
}

test('1,024 rules', async () => {
  const rules = (count: number): readonly PolicyUpdate[] => [
    policy(
      'long',
      'default',
      Array.from({ length: count }, (_, at) => ruleOf(at, { protocols: [6], destination: toPorts(1000 + 2 * at) })),
    ),
  ]
  expect(await judged(rules(1023), 1000 + 2 * 1022)).toBe('allow')
  expect(await judged(rules(1024), 1000 + 2 * 1023)).toBe('allow, cut')
  expect(await judged(rules(1025), 1000 + 2 * 1024)).toBe('deny, cut')
})

test('15 stages', async () => {
  const tiers = (count: number): readonly PolicyUpdate[] =>
    Array.from({ length: count }, (_, at): readonly PolicyUpdate[] => {
      const name = `t${at}`
      return [
        { kind: 'tier', key: name, value: { kind: 'Tier', namespace: '', name, order: at, end: 'deny' } },
        policy(name, name, [ruleOf(0, { action: 'pass', protocols: [6], destination: toPorts(80) })]),
      ]
    }).flat()
  expect(await judged(tiers(14), 80)).toBe('allow')
  expect(await judged(tiers(15), 80)).toBe('deny, cut')
})
