// SPDX-License-Identifier: Apache-2.0
/** explain on a node, without one: the packet, the walk through maps, what fits and what does not. Layer: test. */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ADDR_SELF, FAILSAFE_OUT, FRONTEND_NODE_PORT, RANGE_NODE_PORTS, RANGE_OWN } from '#lib/base/bpf-constants.ts'
import { ANY_V4, parseAddr } from '#lib/base/ip.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { setId } from '#agent/compile/services/list-ids.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { FakeTables } from '../support/fakes/fake-tables.ts'
import { packetText } from '../../testkit/packets/packet-text.ts'
import { loadClusters } from '../../cli/explain/manifests/load-cluster.ts'
import { checksOf } from '../../cli/explain/live/checks.ts'
import { frame } from '../../cli/explain/live/frame.ts'
import { disagreementOf, type RunRecord, type WayRecord } from '../../cli/explain/live/record.ts'
import { serviceOf } from '../../cli/explain/live/service.ts'
import { filledTables } from './filled.ts'
import { NO_NAMES, type FlowRules } from '../../cli/rules.ts'

const [WEB, DB] = [parseAddr('10.1.0.2'), parseAddr('10.1.0.3')]
const packet: Packet = { src: WEB, dst: DB, protocol: 6, sport: 50_000, dport: 5432, icmp: undefined }

const { now } = await loadClusters(fileURLToPath(new URL('cluster', import.meta.url)), undefined)
const view = now.view('n1')
const names = { nameOf: (number: number) => view.policy.ruleName(number), missing: undefined }
const known = (tables: FakeTables) => ({ tables, deviceName: (index: number) => `if${index}`, names })

describe('checksOf', () => {
  const passed = [{ name: 'GlobalNetworkPolicy/security.no-old ingress 1' }]

  test.each([
    { dport: 5432, verdict: 'allow', rule: 'KubernetesNetworkPolicy/shop/db ingress 0' },
    { dport: 81, verdict: 'deny', rule: 'Tier/default ingress end' },
  ])('port $dport: $verdict', ({ dport, verdict, rule }) => {
    const one = { ...packet, dport }
    const staged = { verdict: 'deny', rule: { name: 'Tier/default egress end' }, passed: [] }
    expect(checksOf(known(filledTables(view)), { before: one, packet: one, device: 0, out: 0 })).toMatchObject([
      { stage: 'pod', direction: 'egress', of: '10.1.0.2', verdict: 'allow', rule: null, passed: [], staged },
      { stage: 'pod', direction: 'ingress', of: '10.1.0.3', verdict, rule: { name: rule }, passed, staged: null },
    ])
  })

  test('rules of devices: those before translation see the packet as it came, and the first that decides ends it', () => {
    const tables = filledTables(view)
    const none = '0'.repeat(16)
    const all = { untracked_ingress: none, untracked_egress: none, forward_egress: none, normal_ingress: none, normal_egress: none }
    const set = view.policy.tables.end(DB)?.ingress ?? none
    tables.put(catalogue.np_hosts, [
      { ifindex: 2, view: 0 },
      { ...all, early_ingress: set, forward_ingress: set },
    ])
    const stages = (device: number): readonly string[] =>
      checksOf(known(tables), { before: packet, packet: { ...packet, dport: 81 }, device, out: 0 }).map(
        ({ stage, direction, of, verdict }) => `${stage} ${direction} ${of} ${verdict}`,
      )
    expect(stages(2)).toEqual(['early ingress if2 allow', 'pod ingress 10.1.0.3 deny'])
    expect(stages(3)).toEqual(['pod ingress 10.1.0.3 deny'])
    expect(stages(0)).toEqual(['pod egress 10.1.0.2 allow', 'pod ingress 10.1.0.3 deny'])
  })

  test.each([
    { what: 'a datagram from a failsafe port may be an answer', protocol: 17, sport: 53, stages: ['normal'] },
    { what: 'a SYN from such a port is none', protocol: 6, sport: 53, stages: ['untracked'] },
    { what: 'nor is a datagram from another port', protocol: 17, sport: 54, stages: ['untracked'] },
  ])('what untracked rules deny of what comes to the node: $what', ({ protocol, sport, stages }) => {
    const tables = filledTables(view)
    const node = parseAddr('192.0.2.77')
    const [none, set] = ['0'.repeat(16), view.policy.tables.end(DB)?.ingress ?? '']
    const sets = { untracked_egress: none, early_ingress: none, forward_ingress: none, forward_egress: none, normal_egress: none }
    tables.put(catalogue.np_hosts, [
      { ifindex: 2, view: 0 },
      { ...sets, untracked_ingress: set, normal_ingress: set },
    ])
    tables.put(catalogue.np_addrs, [node, addrInfo(ADDR_SELF)])
    for (const proto of [6, 17])
      tables.put(catalogue.np_failsafes, [{ prefix: 160, direction: FAILSAFE_OUT, proto, port: 53, addr: WEB }, 1])
    const one = { ...packet, dst: node, protocol, sport, dport: 40_000 }
    const checks = checksOf(known(tables), { before: one, packet: one, device: 2, out: 0 })
    expect(checks.map(({ stage, verdict }) => `${stage} ${verdict}`)).toEqual(stages.map((stage) => `${stage} deny`))
  })
})

test('serviceOf: each of its backends', () => {
  const fake = new FakeTables()
  const list = '00000000000000aa'
  const choice = { list, count: 2 }
  const vip = parseAddr('10.96.0.10')
  fake.put(catalogue.np_frontends, [
    { addr: vip, port: 443, proto: 6 },
    { inside: choice, outside: choice, flags: 0, affinity: 0 },
  ])
  for (const [slot, addr] of [DB, parseAddr('10.1.1.3')].entries())
    fake.put(catalogue.np_backends, [
      { list, slot },
      { addr, node: parseAddr('0.0.0.0'), port: 80, flags: 0 },
    ])
  const { service, packets } = serviceOf(fake, { ...packet, dst: vip, dport: 443 }, true)
  expect(service).toEqual({
    frontend: '10.96.0.10:443/TCP',
    choice: 'inside',
    backends: [
      { address: '10.1.0.3', port: 80 },
      { address: '10.1.1.3', port: 80 },
    ],
  })
  expect(packets.map(({ dst, dport }) => [dst, dport])).toEqual([
    [DB, 80],
    [parseAddr('10.1.1.3'), 80],
  ])
})

test.each([
  { what: 'is found at an address of a prefix of the node', sets: [RANGE_OWN, RANGE_NODE_PORTS], frontend: '10.9.0.7:30080/TCP' },
  { what: 'is not where none is served', sets: [RANGE_OWN], frontend: undefined },
  { what: 'is not at any other address', sets: [], frontend: undefined },
])('serviceOf: a node port $what', ({ sets, frontend }) => {
  const [fake, own] = [new FakeTables(), parseAddr('10.9.0.7')]
  const none = { list: '00000000000000aa', count: 0 }
  const row = { inside: none, outside: none, flags: FRONTEND_NODE_PORT, affinity: 0 }
  fake.put(catalogue.np_frontends, [{ addr: ANY_V4, port: 30_080, proto: 6 }, row])
  // a trie has it by a shorter prefix
  for (const set of sets) fake.put(catalogue.np_ranges, [{ prefix: 64 + 128, set: setId(set), addr: own }, 0])
  expect(serviceOf(fake, { ...packet, dst: own, dport: 30_080 }, true).service?.frontend).toBe(frontend)
})

describe('disagreementOf', () => {
  const noted: FlowRules = { egress: null, ingress: { number: 101, name: null }, stagedEgress: null, stagedIngress: null }
  const to = { address: '10.1.0.3', port: 80 }
  const way = { by: 'pod', interface: 'if7', node: null, flags: [] } as const
  const run = (rules: FlowRules): RunRecord => ({ verdict: 'allow', action: 'redirect', drops: [], flow: { from: to, to, way, rules } })
  const wayOf = (verdict: 'allow' | 'deny', number: number): WayRecord => ({
    to,
    verdict,
    checks: [{ stage: 'pod', direction: 'ingress', of: '10.1.0.3', verdict, rule: { number, name: null }, passed: [], staged: null }],
  })

  test.each([
    [wayOf('allow', 101), null],
    [wayOf('deny', 101), 'the program allows what the tables deny (ingress by rule 101)'],
    [wayOf('allow', 102), 'ingress by rule 101 in the flow, rule 102 in the tables'],
  ])('%#', (of, wanted) => {
    expect(disagreementOf(run(noted), [of], NO_NAMES)).toBe(wanted)
  })

  test('a program that denies more than the tables do: rules of the node itself', () => {
    expect(disagreementOf({ verdict: 'deny', action: 'drop', drops: ['policy'], flow: null }, [wayOf('allow', 101)], NO_NAMES)).toBe(null)
  })
})

describe('frame', () => {
  const [v6a, v6b] = [parseAddr('fd00::1'), parseAddr('fd00::2')]
  const mac = '02:00:00:00:00:07'

  test.each<[Partial<Packet>, string]>([
    [{}, 'IPv4 ttl 64 len 40 ip-csum ok 10.1.0.2 > 10.1.0.3 TCP 50000 > 5432 flags 2 seq 0 ack 0 csum ok | '],
    [{ protocol: 17 }, 'IPv4 ttl 64 len 28 ip-csum ok 10.1.0.2 > 10.1.0.3 UDP 50000 > 5432 csum ok | '],
    [{ src: v6a, dst: v6b }, 'IPv6 ttl 64 len 60 fd00::1 > fd00::2 TCP 50000 > 5432 flags 2 seq 0 ack 0 csum ok | '],
    [{ protocol: 1, icmp: { type: 8, code: 0 } }, 'IPv4 ttl 64 len 28 ip-csum ok 10.1.0.2 > 10.1.0.3 ICMP 8/0 word 5046272 csum ok | '],
    [
      { src: v6a, dst: v6b, protocol: 58, icmp: { type: 128, code: 0 } },
      'IPv6 ttl 64 len 48 fd00::1 > fd00::2 ICMPv6 128/0 word 5046272 csum ok | ',
    ],
  ])('%#', (of, wanted) => {
    expect(packetText(frame({ packet: { ...packet, ...of }, echoId: 77, mac }))).toBe(wanted)
  })
})
