// SPDX-License-Identifier: Apache-2.0
/** Policies of netplane.io/v3, and what belongs to them. Layer: test. */
import { describe, expect, test } from 'vitest'
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { model, v3 } from '../../../../support/build.ts'
import type { Manifest } from '../../../../support/build.ts'
import { ruleText } from '#lib/model/policy-text.ts'
import { read } from './policies.ts'

const SHOP = 'netplane.io/namespace == "shop"'
const global = (spec: Manifest) => read(v3('GlobalNetworkPolicy', 'p', spec))
const local = (spec: Manifest) => read(v3('NetworkPolicy', 'shop/p', spec))
const rule = (of: Manifest): Manifest => ({ ingress: [{ action: 'Allow', ...of }] })

describe('the subject of a policy', () => {
  test.each<[Manifest, string]>([
    [{}, `default Infinity, ${SHOP}`],
    [{ selector: "a == 'x'", tier: 'ops', order: 1.5 }, `ops 1.5, (a == "x" && ${SHOP})`],
    [{ selector: 'all()', serviceAccountSelector: "role == 'web'" }, `default Infinity, (${SHOP} && pcsa.role == "web")`],
  ])('of one namespace: %j', (spec, head) => {
    expect(local(spec).policy[0]).toBe(head)
  })

  test.each<[Manifest, string]>([
    [{}, 'default Infinity, all()'],
    [{ selector: "a == 'x'", namespaceSelector: "team != 'y'" }, 'default Infinity, (a == "x" && pcns.team != "y")'],
    [{ selector: 'all()', namespaceSelector: "team != 'y'" }, 'default Infinity, (has(netplane.io/namespace) && pcns.team != "y")'],
    [{ selector: 'all()', namespaceSelector: 'all()' }, 'default Infinity, (has(netplane.io/namespace) && has(netplane.io/namespace))'],
    [{ serviceAccountSelector: 'all()' }, 'default Infinity, (has(netplane.io/serviceaccount) && has(netplane.io/serviceaccount))'],
    [{ selector: 'has(host)', doNotTrack: true, applyOnForward: true }, 'default Infinity, doNotTrack, has(host)'],
    [{ selector: 'has(host)', preDNAT: true }, 'default Infinity, preDNAT, has(host)'],
    [{ selector: 'has(host)', applyOnForward: true }, 'default Infinity, forward, has(host)'],
  ])('of the cluster: %j', (spec, head) => {
    expect(global(spec).policy[0]).toBe(head)
  })
})

test.each<[Manifest, readonly string[]]>([
  [{}, ['ingress: none']],
  [{ egress: [] }, ['ingress: none']],
  [{ egress: [{ action: 'Pass' }] }, ['egress 0: pass']],
  [{ ingress: [{ action: 'Deny' }], egress: [{ action: 'Pass' }] }, ['ingress 0: deny', 'egress 0: pass']],
  [{ types: ['Egress', 'Egress'], ingress: [{ action: 'Deny' }] }, ['egress: none']],
])('directions of %j', (spec, rules) => {
  expect(local(spec).policy.slice(1)).toEqual(rules)
})

describe('a rule', () => {
  test.each<[Manifest, string]>([
    [
      { protocol: 'TCP', destination: { ports: [80, '443', '8000:9000', 'web'], notPorts: [0] } },
      'tcp to ports 80 443 8000-9000 "web" not ports 0',
    ],
    [{ protocol: 'udplite', notProtocol: 47 }, 'protocol 136 not protocol 47'],
    [{ protocol: 'ICMP', icmp: { type: 8, code: 0 }, notICMP: { type: 3 } }, 'icmp type 8/0 not type 3/*'],
    [{ notICMP: { type: 3 }, notProtocol: 'ICMPv6' }, 'not icmpv6 not type 3/*'],
    [{ ipVersion: 6 }, 'v6'],
    [{ source: { nets: ['10.0.0.1', '10.1.0.0/16'] } }, 'v4 from nets 10.0.0.1/32 10.1.0.0/16'],
    [{ destination: { notNets: ['fd00::/8'] } }, 'v6 to not nets fd00::/8'],
    [{ source: { selector: "a == 'x'" } }, `from (${SHOP} && a == "x")`],
    [{ source: { notSelector: "a == 'x'" } }, `from ${SHOP} not [a == "x"]`],
    [{ source: { selector: "a == 'x'", namespaceSelector: "team == 'y'" } }, 'from (pcns.team == "y" && a == "x")'],
    [{ source: { namespaceSelector: 'all()' } }, 'from has(netplane.io/namespace)'],
    [{ source: { selector: 'has(net)', namespaceSelector: 'global()' } }, 'from (!has(netplane.io/namespace) && has(net))'],
    [
      { source: { serviceAccounts: { names: ['b', 'a'], selector: "role == 'web'" } } },
      `from (${SHOP} && pcsa.role == "web" && netplane.io/serviceaccount in {"a", "b"})`,
    ],
    [{ source: { serviceAccounts: {} } }, ''],
    [{ source: { services: { name: 'web' } } }, 'from services shop/web'],
    [{ source: { services: { name: 'web', namespace: 'pay' } }, protocol: 'TCP' }, 'tcp from services pay/web'],
    [{ source: {}, destination: {}, metadata: { annotations: { why: 'x' } } }, ''],
  ])('%j', (of, text) => {
    expect(local(rule(of))).toEqual({ policy: [`default Infinity, ${SHOP}`, `ingress 0: allow ${text}`.trim()], refused: [] })
  })

  test('of the cluster is about all endpoints, unless it says which', () => {
    expect(global(rule({ source: { selector: "a == 'x'" } })).policy[1]).toBe('ingress 0: allow from a == "x"')
    expect(global(rule({ source: { notSelector: "a == 'x'" } })).policy[1]).toBe('ingress 0: allow from not [a == "x"]')
  })

  test('that logs is left out, and the rest stands', () => {
    expect(local({ ingress: [{ action: 'Log', protocol: 'nonsense' }, { action: 'Deny' }] })).toEqual({
      policy: [`default Infinity, ${SHOP}`, 'ingress 1: deny'],
      refused: ['spec.ingress[0].action: Log is not supported in eBPF mode: the rule is left out'],
    })
  })
})

describe('a bad rule closes the policy', () => {
  test.each<[Manifest, string]>([
    [{ action: 'Accept' }, 'action: must be Allow or Deny or Pass or Log'],
    [{ http: { methods: ['GET'] } }, 'http: application layer policy is not supported'],
    [{ protocol: 'XYZ' }, 'protocol: must be TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or 1..255'],
    [{ protocol: 256 }, 'protocol: must be TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or 1..255'],
    [{ destination: { ports: [80] } }, 'destination.ports: needs protocol TCP, UDP or SCTP'],
    [{ protocol: 'ICMP', source: { notPorts: [80] } }, 'source.notPorts: needs protocol TCP, UDP or SCTP'],
    [
      { protocol: 'TCP', destination: { ports: ['90:80'] } },
      'destination.ports[0]: must be 0..65535, a range like 8000:9000, or the name of a port',
    ],
    [
      { protocol: 'TCP', destination: { ports: [65536] } },
      'destination.ports[0]: must be 0..65535, a range like 8000:9000, or the name of a port',
    ],
    [{ icmp: { type: 8 } }, 'icmp: needs protocol ICMP or ICMPv6'],
    [{ protocol: 'ICMP', icmp: { code: 8 } }, 'icmp.code: needs a type'],
    [{ protocol: 'ICMP', icmp: { type: 300 } }, 'icmp.type: must be 0..255'],
    [{ ipVersion: 5 }, 'ipVersion: must be 4 or 6'],
    [{ ipVersion: 6, source: { nets: ['10.0.0.0/8'] } }, 'ipVersion: must be 4, as that of the prefixes is'],
    [{ source: { nets: ['10.0.0.0/8', 'fd00::/8'] } }, ': must not have prefixes of both IPv4 and IPv6'],
    [{ source: { nets: ['10.0.0.0/33'] } }, 'source.nets[0]: must be an IP prefix, like 10.0.0.0/24'],
    [{ source: { selector: 'a ==' } }, 'source.selector: not a selector: "a ==" (expected a text in quotes at the end)'],
    [{ source: { services: {} } }, 'source.services.name: is missing'],
    [{ source: { services: { name: 'web' }, nets: ['10.0.0.0/8'] } }, 'source.nets: must not stand beside services'],
    [{ destination: { services: { name: 'web' } } }, 'destination.services: must not be the destination of an ingress rule'],
  ])('%j', (of, reason) => {
    const refused = [`spec.ingress[0].${reason}`.replace('].: ', ']: ')]
    expect(local(rule(of))).toEqual({ policy: [`default Infinity, closed, ${SHOP}`, 'ingress: none'], refused })
  })

  test('whatever else of it is bad', () => {
    expect(global({ selector: "a == 'x'", order: 'first' })).toEqual({
      policy: ['default Infinity, closed, a == "x"', 'ingress: none', 'egress: none'],
      refused: ['spec.order: must be a number'],
    })
    expect(global({ tier: 'security', order: 'first' }).policy[0]).toBe('security Infinity, closed, all()')
    expect(global({ tier: 7 }).policy[0]).toBe('default Infinity, closed, all()')
    expect(global({ preDNAT: true, doNotTrack: true }).refused).toEqual(['spec.preDNAT: must not be said with doNotTrack'])
    expect(global({ preDNAT: true, applyOnForward: false }).refused).toEqual(['spec.applyOnForward: must be true with preDNAT'])
    expect(global({ preDNAT: true, types: ['Egress'] }).refused).toEqual(['spec.egress: must not be said with preDNAT'])
    expect(global(rule({ source: { services: { name: 'web' } } })).refused).toEqual([
      'spec.ingress[0].source.services.namespace: is missing',
    ])
  })

  test('a policy whose selector cannot be read closes nothing', () => {
    expect(global({ selector: 'a = b' })).toEqual({
      policy: [],
      refused: ['spec.selector: not a selector: "a = b" (cannot be understood at "= b")'],
    })
    expect(global({ selectr: "a == 'x'" })).toEqual({ policy: [], refused: ['spec.selectr: is not a field that is understood here'] })
    expect(local({ namespaceSelector: 'all()' })).toEqual({
      policy: [],
      refused: ['spec.namespaceSelector: is not a field that is understood here'],
    })
  })
})

describe('a staged policy', () => {
  test('is what the real one would be, or its end, or nothing', () => {
    const staged = (spec: Manifest) => read(v3('StagedNetworkPolicy', 'shop/p', spec)).policy
    expect(staged({ ingress: [{ action: 'Deny' }] })).toEqual([`default Infinity, staged Set, ${SHOP}`, 'ingress 0: deny'])
    expect(staged({ stagedAction: 'Delete', tier: 'ops' })).toEqual(['ops Infinity, staged Delete, !all()'])
    expect(staged({ stagedAction: 'Learn' })[0]).toBe(`default Infinity, staged Ignore, ${SHOP}`)
    expect(read(v3('StagedGlobalNetworkPolicy', 'p', { selector: 'has(a)' })).policy[0]).toBe('default Infinity, staged Set, has(a)')
  })

  test('may be one of Kubernetes', () => {
    const staged = (spec: Manifest) => read(v3('StagedKubernetesNetworkPolicy', 'shop/p', spec)).policy
    expect(staged({ podSelector: {}, policyTypes: ['Egress'] })).toEqual([
      `default 1000, staged Set, (netplane.io/orchestrator == "k8s" && ${SHOP})`,
      'egress: none',
    ])
    expect(staged({ stagedAction: 'Delete' })).toEqual(['default Infinity, staged Delete, !all()'])
  })
})

function refusal(manifest: Manifest): readonly string[] {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') throw new Error('not ours')
  return parseObject(manifest, identified.ref).rejected.map((rejected) => rejectedText({ ...rejected, ref: '' }))
}

describe('a tier', () => {
  test('denies at its end unless it says that it passes', () => {
    expect(model(v3('Tier', 'ops', { order: 10 }))).toEqual({ kind: 'Tier', namespace: '', name: 'ops', order: 10, end: 'deny' })
    expect(model(v3('Tier', 'ops', { defaultAction: 'Pass' }))).toMatchObject({ order: Number.POSITIVE_INFINITY, end: 'pass' })
    expect(model(v3('Tier', 'adminnetworkpolicy', {}))).toMatchObject({ order: 1000, end: 'pass' })
  })

  test.each<[string, Manifest, string]>([
    ['a.b', {}, 'metadata.name: must have no "."'],
    ['default', { order: 1 }, 'spec.order: must be 1000000 in this tier'],
    ['default', { defaultAction: 'Pass' }, 'spec.defaultAction: must be Deny in this tier'],
    ['ops', { defaultAction: 'Log' }, 'spec.defaultAction: must be Deny or Pass'],
    ['ops', { order: '1' }, 'spec.order: must be a number'],
  ])('%s %j is refused', (name, spec, reason) => {
    expect(refusal(v3('Tier', name, spec))).toEqual([reason])
  })
})

describe('what rules speak of', () => {
  test('sets and profiles', () => {
    const set = {
      ...v3('NetworkSet', 'shop/s', { nets: ['10.0.0.1', 'fd00::/8'] }),
      metadata: { namespace: 'shop', name: 's', labels: { net: 'x' } },
    }
    expect(model(set)).toMatchObject({
      kind: 'NetworkSet',
      namespace: 'shop',
      labels: new Map([['net', 'x']]),
      nets: [{ bits: 32 }, { bits: 8 }],
    })
    expect(model(v3('GlobalNetworkSet', 's', {}))).toMatchObject({ kind: 'GlobalNetworkSet', namespace: '', nets: [] })
    expect(refusal(v3('GlobalNetworkSet', 's', { nets: ['x'] }))).toEqual(['spec.nets[0]: must be an IP address'])
    const profile = model(
      v3('Profile', 'kns.shop', { labelsToApply: { a: 'b' }, ingress: [{ action: 'Allow', source: { selector: 'has(x)' } }] }),
    )
    if (profile.kind !== 'Profile') throw new Error(profile.kind)
    expect([profile.labels.get('a'), profile.ingress.map(ruleText), profile.egress]).toEqual(['b', ['0: allow from has(x)'], []])
  })

  test('host endpoints', () => {
    const spec = {
      node: 'n1',
      interfaceName: 'eth0',
      expectedIPs: ['192.0.2.1'],
      profiles: ['p'],
      ports: [{ name: 'ssh', protocol: 'TCP', port: 22 }],
    }
    expect(model(v3('HostEndpoint', 'h', spec))).toMatchObject({
      node: 'n1',
      interfaceName: 'eth0',
      profiles: ['p'],
      ports: [{ name: 'ssh', protocol: 6, port: 22 }],
    })
    expect(model(v3('HostEndpoint', 'h', { node: 'n1', expectedIPs: ['fd00::1'] }))).toMatchObject({ interfaceName: undefined, ports: [] })
    expect(refusal(v3('HostEndpoint', 'h', { interfaceName: '*' }))).toEqual(['spec.node: is missing'])
    expect(refusal(v3('HostEndpoint', 'h', { node: 'n1' }))).toEqual(['spec.interfaceName: is missing, and so are expectedIPs'])
    expect(refusal(v3('HostEndpoint', 'h', { node: 'n1', interfaceName: 'a/b' }))).toEqual([
      'spec.interfaceName: must be the name of an interface, or "*"',
    ])
    expect(refusal(v3('HostEndpoint', 'h', { ...spec, ports: [{ port: 22 }] }))).toEqual(['spec.ports[0].name: is missing'])
  })
})
