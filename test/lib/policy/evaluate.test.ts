// SPDX-License-Identifier: Apache-2.0
/** The plain evaluator: which rule decides, for pods and hosts, really and as staged. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import { DEFAULT_ALLOW_PROFILE } from '#lib/model/effective-labels.ts'
import { refText } from '#lib/model/ref.ts'
import type { Direction, HostEndpoint, Policy } from '#lib/model/policy.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import { endpointOf, isFailsafe, isFailsafeAnswer } from '#lib/policy/host.ts'
import type { Hit, Judgement } from '#lib/policy/walk-rules.ts'
import type { View } from '#lib/policy/rule-order.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { clusterPolicy, kubernetesPolicy, model, namespace, node, pod, storeOf, v3 } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

const WEB = '10.0.0.1'
const DB = '10.0.0.2'
const OTHER = '10.0.1.1'
const HOST = '192.168.0.1'
const FAR = '192.0.2.9'

function worldOf(...more: readonly Manifest[]): Snapshot {
  return storeOf([
    namespace('shop', { team: 'sales' }),
    namespace('lab'),
    pod('shop/web', { node: 'n1', ips: [WEB], labels: { app: 'web' } }),
    pod('shop/db', { node: 'n1', ips: [DB], labels: { app: 'db' }, ports: [{ name: 'sql', port: 5432 }] }),
    pod('lab/tool', { node: 'n1', ips: [OTHER] }),
    pod('lab/done', { node: 'n1', ips: ['10.0.1.2'], phase: 'Succeeded', labels: { app: 'web' } }),
    pod('lab/agent', { node: 'n1', ips: [HOST], hostNetwork: true, labels: { app: 'web' } }),
    node('n1', { addresses: [HOST] }),
    ...more,
  ]).snapshot
}

const tcp = (src: string, dst: string, dport: number): Packet => ({
  src: parseAddr(src),
  dst: parseAddr(dst),
  protocol: 6,
  sport: 40_000,
  dport,
  icmp: undefined,
})

function shown({ action, hits }: Judgement<Policy>): string {
  return [action, ...hits.map(hitText)].join(', ')
}

function hitText(hit: Hit<Policy>): string {
  switch (hit.kind) {
    case 'rule':
      return `${hit.tier}: ${refText(hit.policy)} ${hit.at} ${hit.action}`
    case 'tier-end':
      return `${hit.tier}: end ${hit.action}`
    case 'profile':
      return `${hit.profile} ${hit.at} ${hit.action}`
    case 'end':
      return `end ${hit.action}`
  }
}

function atPod(world: Snapshot, name: string, packet: Packet & { direction?: Direction; view?: View }): string {
  const one = world.pods.get(name)
  if (one === undefined) throw new Error(name)
  return shown(new Evaluator(world).pod(one, packet, { direction: 'ingress', ...packet }))
}

describe('a pod', () => {
  test('under no policy is left to its namespace’s profile', () => {
    expect(atPod(worldOf(), 'shop/web', tcp(FAR, WEB, 80))).toBe('allow, kns.shop 0 allow')
    const closed = worldOf(v3('Profile', 'kns.shop', { ingress: [{ action: 'Allow', source: { selector: "app == 'db'" } }] }))
    expect(atPod(closed, 'shop/web', tcp(DB, WEB, 80))).toBe('allow, kns.shop 0 allow')
    expect(atPod(closed, 'shop/web', tcp(FAR, WEB, 80))).toBe('deny, end deny')
    expect(atPod(closed, 'shop/web', { ...tcp(WEB, FAR, 80), direction: 'egress' })).toBe('deny, end deny')
  })

  test('has a verdict with the tier, policy and rule that decided, and those that passed', () => {
    const world = worldOf(
      v3('Tier', 'ops', { order: 1 }),
      v3('GlobalNetworkPolicy', 'watch', {
        tier: 'ops',
        selector: 'has(app)',
        ingress: [{ action: 'Deny', source: { nets: ['192.0.2.0/24'] } }, { action: 'Pass' }],
      }),
      kubernetesPolicy('shop/db', {
        podSelector: { matchLabels: { app: 'db' } },
        ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 'sql' }] }],
      }),
    )
    expect(atPod(world, 'shop/db', tcp(FAR, DB, 5432))).toBe('deny, ops: GlobalNetworkPolicy/watch 0 deny')
    expect(atPod(world, 'shop/db', tcp(WEB, DB, 5432))).toBe(
      'allow, ops: GlobalNetworkPolicy/watch 1 pass, default: KubernetesNetworkPolicy/shop/db 0 allow',
    )
    expect(atPod(world, 'shop/db', tcp(WEB, DB, 80))).toBe('deny, ops: GlobalNetworkPolicy/watch 1 pass, default: end deny')
    expect(atPod(world, 'lab/tool', tcp(FAR, OTHER, 80))).toBe('allow, kns.lab 0 allow')
  })

  test('does not know a peer that has no address of its own', () => {
    const world = worldOf(
      kubernetesPolicy('shop/web', {
        podSelector: {},
        ingress: [{ from: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: 'web' } } }] }],
      }),
    )
    expect(atPod(world, 'shop/db', tcp(WEB, DB, 80))).toMatch(/^allow/)
    expect(atPod(world, 'shop/db', tcp(HOST, DB, 80))).toMatch(/^deny/)
    expect(atPod(world, 'shop/db', tcp('10.0.1.2', DB, 80))).toMatch(/^deny/)
  })

  test('is closed by a policy whose rules cannot be read, even in a tier that passes', () => {
    const bad = {
      ...(model(
        clusterPolicy('c', { ingress: [{ action: 'Accept', from: [{ namespaces: { matchLabels: { team: 'sales' } } }] }] }),
      ) as Policy),
    }
    const world = worldOf()
    const policies = (...all: readonly Policy[]): Snapshot => ({ ...world, policies: new Map(all.map((one) => [refText(one), one])) })
    expect(atPod(policies(bad), 'lab/tool', tcp(FAR, OTHER, 80))).toBe('allow, adminnetworkpolicy: end pass, kns.lab 0 allow')
    const closed: Policy = { ...bad, name: 'd', ingress: [], closed: true }
    expect(atPod(policies(closed), 'lab/tool', tcp(FAR, OTHER, 80))).toBe('deny, adminnetworkpolicy: end deny')
    expect(atPod(policies(bad, closed), 'lab/tool', tcp(WEB, OTHER, 80))).toBe('allow, adminnetworkpolicy: ClusterNetworkPolicy/c 0 allow')
  })

  test('is closed, in the default tier, by a policy of a tier that is not there: what it denied does not open', () => {
    const lost = (name: string, spec: Manifest): Manifest => v3('GlobalNetworkPolicy', name, { tier: 'nowhere', ...spec })
    const ingress = [{ action: 'Allow' }]
    const world = worldOf(lost('a', { selector: "app == 'web'", ingress }), lost('b', { selector: "app == 'db'", types: ['Egress'] }))
    expect(atPod(world, 'shop/web', tcp(FAR, WEB, 80))).toBe('deny, default: end deny')
    expect(atPod(world, 'shop/web', { ...tcp(WEB, FAR, 80), direction: 'egress' })).toBe('allow, kns.shop 0 allow')
    expect(atPod(world, 'shop/db', tcp(FAR, DB, 80))).toBe('allow, kns.shop 0 allow')
    const other = v3('GlobalNetworkPolicy', 'c', { selector: 'all()', ingress })
    expect(atPod(worldOf(lost('a', { selector: 'all()', ingress: [{ action: 'Deny' }] }), other), 'shop/web', tcp(FAR, WEB, 80))).toBe(
      'allow, default: GlobalNetworkPolicy/c 0 allow',
    )
  })

  test('of the host is closed by such a policy also where ends of tiers say nothing', () => {
    const early = v3('GlobalNetworkPolicy', 'early', {
      tier: 'nowhere',
      selector: 'all()',
      preDNAT: true,
      applyOnForward: true,
      types: ['Ingress'],
    })
    const world = worldOf(v3('HostEndpoint', 'n1-eth0', { node: 'n1', interfaceName: 'eth0' }), early)
    const [endpoint] = world.hostEndpoints.values()
    if (endpoint === undefined) throw new Error('no host endpoint')
    const packet = tcp(FAR, WEB, 80)
    const passing = { packet, before: packet, ofHost: false, direction: 'ingress' as const }
    expect(shown(new Evaluator(world).host(endpoint, passing))).toBe('deny, default: end deny')
  })
})

describe('staged policies', () => {
  const world = worldOf(
    v3('NetworkPolicy', 'shop/p', { order: 1, selector: 'all()', ingress: [{ action: 'Allow' }] }),
    v3('StagedNetworkPolicy', 'shop/p', { order: 1, selector: 'all()', ingress: [{ action: 'Deny' }] }),
    v3('StagedGlobalNetworkPolicy', 'ignored', { stagedAction: 'Ignore', selector: 'all()' }),
    kubernetesPolicy('lab/q'),
    v3('StagedKubernetesNetworkPolicy', 'lab/q', { stagedAction: 'Delete' }),
    v3('StagedGlobalNetworkPolicy', 'new', { order: 2, selector: "app == 'db'", egress: [{ action: 'Pass' }] }),
  )

  test('decide nothing', () => {
    expect(atPod(world, 'shop/web', tcp(FAR, WEB, 80))).toBe('allow, default: NetworkPolicy/shop/p 0 allow')
    expect(atPod(world, 'lab/tool', tcp(FAR, OTHER, 80))).toBe('deny, default: end deny')
    expect(atPod(world, 'shop/db', { ...tcp(DB, FAR, 80), direction: 'egress' })).toBe('allow, kns.shop 0 allow')
  })

  test('show what they would decide', () => {
    const view = 'staged'
    expect(atPod(world, 'shop/web', { ...tcp(FAR, WEB, 80), view })).toBe('deny, default: StagedNetworkPolicy/shop/p 0 deny')
    expect(atPod(world, 'lab/tool', { ...tcp(FAR, OTHER, 80), view })).toBe('allow, kns.lab 0 allow')
    expect(atPod(world, 'shop/db', { ...tcp(DB, FAR, 80), view, direction: 'egress' })).toBe(
      'allow, default: StagedGlobalNetworkPolicy/new 0 pass, kns.shop 0 allow',
    )
  })
})

describe('a host endpoint', () => {
  const endpoint = (name: string, spec: Manifest): HostEndpoint => {
    const object = model(v3('HostEndpoint', name, { node: 'n1', ...spec }))
    if (object.kind !== 'HostEndpoint') throw new Error(object.kind)
    return object
  }
  const wildcard = endpoint('w', { interfaceName: '*', profiles: ['open'] })
  const uplink = endpoint('u', { interfaceName: 'eth0' })
  const expected = endpoint('e', { expectedIPs: [HOST] })

  test('is found by its name, by an address it expects, or is the wildcard', () => {
    const find = (name: string, addresses: readonly string[], where = 'n1'): string | undefined =>
      endpointOf([wildcard, expected, uplink], { node: where, name, addresses: addresses.map(parseAddr) })?.name
    expect([find('eth0', [HOST]), find('eth1', [HOST]), find('eth1', []), find('eth0', [], 'n2')]).toEqual(['u', 'e', 'w', undefined])
  })

  const world = worldOf(
    v3('Profile', 'open', { ingress: [{ action: 'Allow' }], egress: [{ action: 'Allow' }] }),
    v3('GlobalNetworkPolicy', 'early', {
      order: 1,
      preDNAT: true,
      selector: '!has(app)',
      ingress: [
        { action: 'Deny', protocol: 'TCP', destination: { ports: [30_000] } },
        { action: 'Allow', protocol: 'TCP', destination: { ports: [30_001] } },
      ],
    }),
    v3('GlobalNetworkPolicy', 'through', {
      order: 2,
      applyOnForward: true,
      selector: '!has(app) && !has(netplane.io/namespace)',
      ingress: [{ action: 'Allow', protocol: 'TCP', destination: { ports: [80] } }],
    }),
    v3('GlobalNetworkPolicy', 'untracked', {
      order: 3,
      doNotTrack: true,
      selector: '!has(app)',
      ingress: [{ action: 'Deny', source: { nets: ['192.0.2.0/24'] } }],
    }),
  )
  const at = (to: HostEndpoint, packet: Packet, of: { ofHost: boolean; before?: Packet; direction?: Direction }): string =>
    shown(new Evaluator(world).host(to, { packet, before: packet, direction: 'ingress', ...of }))

  /** what comes in has been asked about before its translation */
  const EARLY = 'default: end pass'

  test('is closed to the host unless a policy or profile allows', () => {
    expect(at(uplink, tcp(FAR, HOST, 80), { ofHost: true })).toBe(`allow, ${EARLY}, default: GlobalNetworkPolicy/through 0 allow`)
    expect(at(uplink, tcp(FAR, HOST, 22), { ofHost: true })).toBe(`deny, ${EARLY}, default: end deny`)
    expect(at(uplink, tcp(HOST, FAR, 22), { ofHost: true, direction: 'egress' })).toBe('deny, end deny')
    expect(at(wildcard, tcp(HOST, FAR, 22), { ofHost: true, direction: 'egress' })).toBe('allow, open 0 allow')
  })

  test('is open where no policy decides by the profile of automatic ones, unless one is written', () => {
    const automatic = endpoint('a', { interfaceName: '*', profiles: [DEFAULT_ALLOW_PROFILE] })
    const egress = (of: Evaluator): string =>
      shown(of.host(automatic, { packet: tcp(HOST, FAR, 22), before: tcp(HOST, FAR, 22), ofHost: true, direction: 'egress' }))
    expect(egress(new Evaluator(world))).toBe(`allow, ${DEFAULT_ALLOW_PROFILE} 0 allow`)
    expect(egress(new Evaluator(worldOf(v3('Profile', DEFAULT_ALLOW_PROFILE, {}))))).toBe('deny, end deny')
    expect(at(automatic, tcp(FAR, HOST, 22), { ofHost: true })).toBe(`deny, ${EARLY}, default: end deny`)
  })

  test('lets through what no policy of what passes through speaks of, in that direction', () => {
    expect(at(uplink, tcp(FAR, WEB, 80), { ofHost: false })).toBe(`allow, ${EARLY}, default: GlobalNetworkPolicy/through 0 allow`)
    expect(at(uplink, tcp(FAR, WEB, 81), { ofHost: false })).toBe(`deny, ${EARLY}, default: end deny`)
    expect(at(uplink, tcp(WEB, FAR, 81), { ofHost: false, direction: 'egress' })).toBe('allow, end allow')
  })

  test('is asked first about the packet as it came', () => {
    const packet = tcp(FAR, WEB, 80)
    expect(at(uplink, packet, { ofHost: false, before: tcp(FAR, HOST, 30_000) })).toBe('deny, default: GlobalNetworkPolicy/early 0 deny')
    expect(at(uplink, tcp(FAR, WEB, 81), { ofHost: false, before: tcp(FAR, HOST, 30_001) })).toBe(
      'allow, default: GlobalNetworkPolicy/early 1 allow',
    )
  })

  test('has policies that see every packet by itself', () => {
    const evaluator = new Evaluator(world)
    expect(shown(evaluator.untracked(uplink, tcp(FAR, HOST, 80), { direction: 'ingress' }))).toBe(
      'deny, default: GlobalNetworkPolicy/untracked 0 deny',
    )
    expect(shown(evaluator.untracked(uplink, tcp(WEB, HOST, 80), { direction: 'ingress' }))).toBe('allow, default: end pass, end allow')
  })

  test('on a pod’s interface goes before the pod’s own policies, seen from the host', () => {
    const web = world.pods.get('shop/web')
    if (web === undefined) throw new Error('web')
    const passing = (packet: Packet, ofHost: boolean, settled: boolean) =>
      shown(new Evaluator(world).podOn(uplink, web, { packet, before: packet, ofHost, settled, direction: 'egress' }))
    expect(passing(tcp(WEB, DB, 80), false, true)).toBe(`allow, ${EARLY}, default: GlobalNetworkPolicy/through 0 allow, kns.shop 0 allow`)
    expect(passing(tcp(WEB, DB, 81), false, true)).toBe(`deny, ${EARLY}, default: end deny`)
    expect(passing(tcp(WEB, HOST, 22), true, true)).toBe('allow, default: end pass, kns.shop 0 allow')
    expect(passing(tcp(WEB, HOST, 22), true, false)).toMatch(/^deny/)
  })

  test('keeps its failsafe ports', () => {
    const port = (number: number) => ({ protocol: 6, port: parsePort(number), net: parseCidr('192.0.2.0/24') })
    const failsafes = { inbound: [port(22)], outbound: [port(53)] }
    const answer = (src: string, dst: string, sport: number) => ({ ...tcp(src, dst, 40_000), sport })
    expect(isFailsafe(failsafes, tcp(FAR, HOST, 22), 'ingress')).toBe(true)
    expect(isFailsafe(failsafes, tcp(WEB, HOST, 22), 'ingress')).toBe(false)
    expect(isFailsafe(failsafes, tcp(FAR, HOST, 53), 'ingress')).toBe(false)
    expect(isFailsafe(failsafes, tcp(HOST, FAR, 53), 'egress')).toBe(true)
    expect(isFailsafe(failsafes, tcp(HOST, FAR, 22), 'egress')).toBe(false)
    expect(isFailsafeAnswer(failsafes, answer(FAR, HOST, 53), 'ingress')).toBe(true)
    expect(isFailsafeAnswer(failsafes, answer(WEB, HOST, 53), 'ingress')).toBe(false)
    expect(isFailsafeAnswer(failsafes, answer(FAR, HOST, 22), 'ingress')).toBe(false)
    expect(isFailsafeAnswer(failsafes, answer(HOST, FAR, 22), 'egress')).toBe(true)
  })
})
