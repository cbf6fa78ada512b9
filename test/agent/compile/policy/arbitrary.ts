// SPDX-License-Identifier: Apache-2.0
/** Small worlds in which much of everything meets: few labels, ports and prefixes, so that they often fit.
 * Layer: test. */
import fc from 'fast-check'
import { isPort, isV4, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Addr, Port } from '#lib/base/ip.ts'
import { DEFAULT_ALLOW_PROFILE } from '#lib/model/effective-labels.ts'
import { endpointState } from '#lib/model/endpoint-slice.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Namespace } from '#lib/model/namespace.ts'
import type { Pod } from '#lib/model/pod.ts'
import { ANYWHERE, POLICY_KINDS } from '#lib/model/policy.ts'
import type { HostEndpoint, NamedPort, NetworkSet, Policy, PortMatch, Profile, Rule, Side, Tier } from '#lib/model/policy.ts'
import { ALL, and, equals, has, not, or } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'

export const NODE = 'n1'

export function portNumber(number: number): Port {
  if (!isPort(number)) throw new Error(`port ${number}`)
  return number
}

const NAMESPACES = ['x', 'y']
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']
const PORTS = [53, 80, 81, 255, 256, 8080, 65535]
const PORT_NAMES = ['web', 'dns']
const PROTOCOLS = [1, 6, 17, 47, 58, 132]

const namespaceName = fc.constantFrom(...NAMESPACES)
const name = fc.constantFrom(...NAMES)
const label = fc.constantFrom('app', 'env')
const value = fc.constantFrom('1', '2', '3')
const labels = fc.dictionary(label, value, { maxKeys: 2 }).map((record) => new Map(Object.entries(record)))

/** A pod has the address of its name and namespace, in either family. */
export function addressOf(of: { readonly namespace: string; readonly name: string }, v4: boolean): Addr {
  const [high, low] = [NAMESPACES.indexOf(of.namespace), NAMES.indexOf(of.name)]
  return parseAddr(v4 ? `10.0.${high}.${low + 1}` : `fd00::${high}:${low + 1}`)
}

const STRANGERS = ['192.0.2.1', '192.0.2.129', '203.0.113.7', '2001:db8::1', '2001:db8::8001', '10.0.0.99', '172.16.0.2'].map(parseAddr)

const address: fc.Arbitrary<Addr> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.record({ namespace: namespaceName, name }), fc.boolean()).map(([of, v4]) => addressOf(of, v4)) },
  { weight: 1, arbitrary: fc.constantFrom(...STRANGERS) },
)

const cidr = fc
  .constantFrom(
    '0.0.0.0/0',
    '::/0',
    '10.0.0.0/8',
    '10.0.0.0/24',
    '10.0.1.2/32',
    '192.0.2.0/24',
    '192.0.2.128/25',
    'fd00::/64',
    '2001:db8::/32',
    '2001:db8::1/128',
  )
  .map(parseCidr)

const plainSelector: fc.Arbitrary<Selector> = fc.oneof(
  fc.constant(ALL),
  fc.tuple(label, value).map(([key, text]) => equals(key, text)),
  label.map(has),
  label.map((key) => not(has(key))),
  fc.tuple(label, fc.subarray(['1', '2', '3'], { minLength: 1 })).map(([key, values]) => ({ op: 'in' as const, label: key, values })),
  namespaceName.map((text) => equals('netplane.io/namespace', text)),
  fc.constant({ op: 'global' as const }),
  fc.tuple(label, value).map(([key, text]) => equals(`pcns.${key}`, text)),
)
const selector: fc.Arbitrary<Selector> = fc.oneof(
  { weight: 3, arbitrary: plainSelector },
  fc.tuple(plainSelector, plainSelector).map(([a, b]) => and(a, b)),
  fc.tuple(plainSelector, plainSelector).map(([a, b]) => or(a, b)),
  plainSelector.map(not),
)

function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined, freq: 2 })
}

const portMatch: fc.Arbitrary<PortMatch> = fc.oneof(
  fc.constantFrom(...PORTS).map((port) => ({ from: port, to: port })),
  fc.tuple(fc.constantFrom(0, ...PORTS), fc.constantFrom(...PORTS)).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) })),
  fc.constantFrom(...PORT_NAMES).map((text) => ({ name: text })),
)

const side: fc.Arbitrary<Side> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(ANYWHERE) },
  {
    weight: 3,
    arbitrary: fc.record({
      selector: fc.option(selector, { nil: undefined }),
      notSelector: rarely(selector),
      nodes: rarely(fc.constant(has('env'))),
      nets: rarely(fc.array(cidr, { maxLength: 3 })),
      notNets: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(cidr, { maxLength: 2 })),
      ports: rarely(fc.array(portMatch, { maxLength: 3 })),
      notPorts: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(portMatch, { maxLength: 2 })),
      services: fc.option(fc.array(fc.record({ namespace: namespaceName, name }), { maxLength: 2 }), { nil: undefined, freq: 1 }),
    }),
  },
)

/** By one thing alone, or of one owner: where much is asked at once, little of it ever decides. */
const plainSide: fc.Arbitrary<Side> = fc
  .oneof(
    fc.record({ selector, notSelector: selector }),
    fc.record({ selector, notSelector: selector, ports: fc.array(portMatch, { minLength: 1, maxLength: 2 }) }),
    fc.record({ selector }),
    fc.record({ notSelector: selector }),
    fc.record({ nets: fc.array(cidr, { minLength: 1, maxLength: 2 }) }),
    fc.record({ notNets: fc.array(cidr, { minLength: 1, maxLength: 2 }) }),
    fc.record({ ports: fc.array(portMatch, { minLength: 1, maxLength: 2 }) }),
    fc.record({ notPorts: fc.array(portMatch, { minLength: 1, maxLength: 2 }) }),
  )
  .map((one) => ({ ...ANYWHERE, ...one }))

const icmp = fc.record({ type: fc.constantFrom(0, 3, 8, 255), code: fc.option(fc.constantFrom(0, 1, 255), { nil: undefined }) })
const protocols = fc.subarray(PROTOCOLS, { minLength: 1, maxLength: 2 })

const rule: fc.Arbitrary<Omit<Rule, 'at'>> = fc.record({
  action: fc.constantFrom('allow' as const, 'deny' as const, 'pass' as const),
  name: fc.constant(undefined),
  ipVersion: rarely(fc.constantFrom(4 as const, 6 as const)),
  protocols: fc.option(protocols, { nil: undefined }),
  notProtocols: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, protocols),
  icmp: rarely(icmp),
  notIcmp: rarely(icmp),
  source: side,
  destination: side,
})
/** A policy for everything, whose one rule asks one thing of one end, and may ask for a protocol. */
export const plainPolicy: fc.Arbitrary<KubeObject> = fc
  .record({ side: plainSide, isSource: fc.boolean(), protocols: fc.option(protocols, { nil: undefined }) })
  .map(({ side: asked, isSource, protocols: some }) => {
    const plain = { action: 'allow' as const, name: undefined, ipVersion: undefined, notProtocols: [], icmp: undefined, notIcmp: undefined }
    const ends = { source: isSource ? asked : ANYWHERE, destination: isSource ? ANYWHERE : asked }
    const only: readonly Rule[] = [{ ...plain, ...ends, protocols: some, at: 0 }]
    const of = { kind: 'GlobalNetworkPolicy' as const, namespace: '', name: 'plain', tier: 'default', order: 1, subject: ALL }
    return { ...of, ingress: only, egress: only, scope: 'normal' as const, staged: undefined }
  })
const rules = fc.array(rule, { maxLength: 5 }).map((all) => all.map((one, at) => ({ ...one, at })))

export const policy: fc.Arbitrary<Policy> = fc
  .record({
    kind: fc.constantFrom(...POLICY_KINDS),
    namespace: fc.constantFrom('', ...NAMESPACES),
    name,
    tier: fc.constantFrom('default', 'sec', 'adminnetworkpolicy', 'baselineadminnetworkpolicy', 'nowhere'),
    order: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    subject: selector,
    ingress: fc.option(rules, { nil: undefined, freq: 4 }),
    egress: fc.option(rules, { nil: undefined, freq: 4 }),
    scope: fc.constantFrom(
      'normal' as const,
      'normal' as const,
      'normal' as const,
      'forward' as const,
      'preDNAT' as const,
      'doNotTrack' as const,
    ),
    closed: fc.constantFrom(false, false, false, true),
    deletes: fc.boolean(),
  })
  .map(({ closed, deletes, ...rest }) => {
    const staged = rest.kind.startsWith('Staged') ? (deletes ? ('Delete' as const) : ('Set' as const)) : undefined
    return { ...rest, staged, ...(closed ? { closed: true as const } : {}) }
  })

const namedPort: fc.Arbitrary<NamedPort> = fc.record({
  name: fc.constantFrom(...PORT_NAMES),
  protocol: fc.constantFrom(6, 17),
  port: fc.constantFrom(...PORTS.map(portNumber)),
})

export const pod: fc.Arbitrary<Pod> = fc
  .record({
    namespace: namespaceName,
    name,
    nodeName: fc.constantFrom(NODE, NODE, 'n2'),
    labels,
    serviceAccount: fc.constantFrom('default', 'robot'),
    ports: fc.array(namedPort, { maxLength: 2 }),
    hostNetwork: fc.constantFrom(false, false, false, true),
    phase: fc.constantFrom('Running' as const, 'Running' as const, 'Succeeded' as const),
  })
  .map((of) => ({ ...of, kind: 'Pod', terminating: false, podIPs: [addressOf(of, true), addressOf(of, false)] }))

const namespace: fc.Arbitrary<Namespace> = fc
  .record({ name: namespaceName, labels })
  .map((of) => ({ ...of, kind: 'Namespace', namespace: '' }))

const networkSet: fc.Arbitrary<NetworkSet> = fc
  .record({ namespace: fc.constantFrom('', ...NAMESPACES), name, labels, nets: fc.array(cidr, { maxLength: 4 }) })
  .map((of) => ({ ...of, kind: of.namespace === '' ? 'GlobalNetworkSet' : 'NetworkSet' }))

const tier: fc.Arbitrary<Tier> = fc
  .record({
    name: fc.constantFrom('sec', 'default'),
    order: fc.constantFrom(1, 2_000_000),
    end: fc.constantFrom('deny' as const, 'pass' as const),
  })
  .map((of) => ({ ...of, kind: 'Tier', namespace: '' }))

const profile: fc.Arbitrary<Profile> = fc
  .record({ name: fc.constantFrom('kns.x', 'ksa.y.robot', DEFAULT_ALLOW_PROFILE), labels, ingress: rules, egress: rules })
  .map((of) => ({ ...of, kind: 'Profile', namespace: '' }))

const slice: fc.Arbitrary<EndpointSlice> = fc
  .record({
    namespace: namespaceName,
    name,
    service: name,
    addrs: fc.array(address, { maxLength: 3 }),
    port: fc.constantFrom(...PORTS),
    v4: fc.boolean(),
  })
  .map(({ addrs, port, v4, ...of }) => ({
    ...of,
    kind: 'EndpointSlice',
    addressType: v4 ? 'IPv4' : 'IPv6',
    ports: [{ name: 'p', protocol: 'TCP', port: portNumber(port) }],
    endpoints: addrs.map((addr) => ({
      addr,
      pod: 0,
      state: endpointState(true, true, false),
      ...{ nodeName: undefined, zone: undefined, hints: undefined },
    })),
  }))

/** A node that has one of the strangers' addresses, and a pod's. */
const node: fc.Arbitrary<KubeObject> = fc
  .record({ name: fc.constantFrom(NODE, 'n2'), labels, addr: address })
  .map(({ name: text, labels: own, addr }) => ({
    kind: 'Node',
    namespace: '',
    name: text,
    labels: own,
    addresses: [addr],
    podCIDRs: [],
    subnets: [],
    zone: undefined,
  }))

const host: fc.Arbitrary<HostEndpoint> = fc
  .record({
    name,
    node: fc.constantFrom(NODE, NODE, 'n2'),
    labels,
    // no pod's: what a name of a pod's own port means is known before its address is
    expectedIPs: fc.array(fc.constantFrom(...STRANGERS), { maxLength: 2 }),
    profiles: fc.subarray(['kns.x', 'ksa.y.robot', DEFAULT_ALLOW_PROFILE]),
    ports: fc.array(namedPort, { maxLength: 2 }),
  })
  .map((of) => ({ ...of, kind: 'HostEndpoint', namespace: '', interfaceName: undefined }))

/** Most are policies and pods. */
export const object: fc.Arbitrary<KubeObject> = fc.oneof(
  { weight: 6, arbitrary: policy },
  { weight: 6, arbitrary: pod },
  { weight: 2, arbitrary: networkSet },
  { weight: 2, arbitrary: slice },
  { weight: 1, arbitrary: namespace },
  { weight: 1, arbitrary: tier },
  { weight: 2, arbitrary: host },
  { weight: 1, arbitrary: profile },
  { weight: 1, arbitrary: node },
)

/** Addresses with several owners: pods, and sets around them. */
export const owners = fc.array(fc.oneof(pod, networkSet), { minLength: 8, maxLength: 16 })

/** Both ends are of one family. */
const ends = fc.boolean().chain((v4) => {
  const one = address.filter((addr) => isV4(addr) === v4)
  return fc.record({ src: one, dst: one })
})

export const packet: fc.Arbitrary<Packet> = fc
  .record({
    ends,
    protocol: fc.constantFrom(...PROTOCOLS),
    sport: fc.constantFrom(...PORTS),
    dport: fc.constantFrom(...PORTS),
    type: fc.constantFrom(0, 3, 8, 255),
    code: fc.constantFrom(0, 1, 255),
  })
  .map(({ type, code, ends: both, ...rest }) => {
    const of = { ...rest, ...both }
    const isIcmp = of.protocol === 1 || of.protocol === 58
    const hasPorts = [6, 17, 132].includes(of.protocol)
    return { ...of, sport: hasPorts ? of.sport : 0, dport: hasPorts ? of.dport : 0, icmp: isIcmp ? { type, code } : undefined }
  })
