// SPDX-License-Identifier: Apache-2.0
/** Addresses in the old forms that API servers store, and addresses that nobody can read, in each kind that has some.
 * Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { policyText } from '#lib/model/policy-text.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { clusterPolicy, kubernetesPolicy, node, nodeNetwork, pod, service, slice, v3 } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

/** Old, unreadable, and as the others have it. */
type Addresses = readonly [old: string, mapped: string, bad: string, good: string]
const ADDRESSES: Addresses = ['10.244.002.011', '::ffff:10.244.1.12', '10.244.1', '10.244.1.13']
const PREFIXES: Addresses = ['10.244.002.0/24', '::ffff:10.244.1.0/120', '10.244.1/24', '10.245.0.0/16']
const [OLD, MAPPED, BAD, GOOD] = ADDRESSES

function read(manifest: Manifest): { readonly found: readonly string[]; readonly refused: readonly string[] } {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') throw new Error(JSON.stringify(identified))
  const parsed = parseObject(manifest, identified.ref)
  const stands = parsed.kind === 'ok' ? parsed.value : parsed.instead
  const refused = parsed.rejected.map((rejected) => rejectedText({ ...rejected, ref: '' }))
  return { found: stands === undefined ? ['nothing'] : addressesIn(stands), refused }
}

function addressesIn(object: KubeObject): readonly string[] {
  switch (object.kind) {
    case 'EndpointSlice':
      return object.endpoints.map(({ addr }) => formatAddr(addr))
    case 'Service':
      return [...object.clusterIPs, ...object.externalIPs, ...object.loadBalancerIPs]
        .map(formatAddr)
        .concat((object.loadBalancerSourceRanges ?? []).map(formatCidr))
    case 'Pod':
      return object.podIPs.map(formatAddr)
    case 'Node':
      return [...object.addresses.map(formatAddr), ...object.podCIDRs.map(formatCidr)]
    case 'NodeNetwork':
      return object.addresses.map(formatAddr)
    case 'HostEndpoint':
      return object.expectedIPs.map(formatAddr)
    case 'NetworkSet':
    case 'GlobalNetworkSet':
      return object.nets.map(formatCidr)
    case 'IPPool':
      return [formatCidr(object.cidr)]
    default:
      return 'subject' in object ? policyText(object).slice(1) : []
  }
}

const NO_ADDRESS = 'must be an IP address'
const NO_PREFIX = 'must be an IP prefix, like 10.0.0.0/24'
const balanced = (of: Manifest): Manifest => service('web', { type: 'LoadBalancer', spec: of })

describe('all that can be read is used, and what cannot be is left out and named', () => {
  test.each<[string, (texts: Addresses) => Manifest, readonly string[], string, Addresses]>([
    [
      'endpoints',
      (of) => slice('web-1', { endpoints: of.map((addr) => ({ addr })) }),
      [],
      `endpoints[2].addresses[0]: ${NO_ADDRESS}`,
      ADDRESSES,
    ],
    ['external addresses', (externalIPs) => balanced({ externalIPs }), ['10.96.0.1'], `spec.externalIPs[2]: ${NO_ADDRESS}`, ADDRESSES],
    [
      "load balancers' addresses",
      (of) => service('web', { type: 'LoadBalancer', ingress: of.map((ip) => ({ ip })) }),
      ['10.96.0.1'],
      `status.loadBalancer.ingress[2].ip: ${NO_ADDRESS}`,
      ADDRESSES,
    ],
    [
      'source ranges',
      (loadBalancerSourceRanges) => balanced({ loadBalancerSourceRanges }),
      ['10.96.0.1'],
      `spec.loadBalancerSourceRanges[2]: ${NO_PREFIX}`,
      PREFIXES,
    ],
    ["a node's addresses", (addresses) => node('n1', { addresses }), [], `status.addresses[3].address: ${NO_ADDRESS}`, ADDRESSES],
    ["a node's ranges", (podCIDRs) => node('n1', { podCIDRs }), [], `spec.podCIDRs[2]: ${NO_PREFIX}`, PREFIXES],
    ["an agent's addresses", (addresses) => nodeNetwork('n1', { addresses }), [], `spec.addresses[2]: ${NO_ADDRESS}`, ADDRESSES],
    [
      'a host endpoint',
      (expectedIPs) => v3('HostEndpoint', 'h', { node: 'n1', expectedIPs }),
      [],
      `spec.expectedIPs[2]: ${NO_ADDRESS}`,
      ADDRESSES,
    ],
    ['a network set', (nets) => v3('NetworkSet', 'shop/s', { nets }), [], `spec.nets[2]: ${NO_PREFIX}`, PREFIXES],
    ['a global network set', (nets) => v3('GlobalNetworkSet', 's', { nets }), [], `spec.nets[2]: ${NO_PREFIX}`, PREFIXES],
  ])('%s', (...[, of, before, refused, texts]) => {
    const wanted = texts === ADDRESSES ? ['10.244.2.11', '10.244.1.12', GOOD] : ['10.244.2.0/24', '10.244.1.0/24', '10.245.0.0/16']
    expect(read(of(texts))).toEqual({ found: [...before, ...wanted], refused: [refused] })
  })

  test.each<[string, Manifest, readonly string[], readonly string[]]>([
    ['a cluster address', service('web', { clusterIPs: [MAPPED] }), ['10.244.1.12'], []],
    ['a cluster address of old', service('web', { clusterIPs: [OLD, 'fd00::0001'] }), ['10.244.2.11', 'fd00::1'], []],
    ['one of two cluster addresses', service('web', { clusterIPs: [BAD, 'fd00::1'] }), ['fd00::1'], [`spec.clusterIPs[0]: ${NO_ADDRESS}`]],
    [
      'the only cluster address',
      service('web', { clusterIPs: [BAD], spec: { externalIPs: [GOOD] } }),
      [GOOD],
      [`spec.clusterIPs[0]: ${NO_ADDRESS}`, 'spec.clusterIP: is missing: the service has no cluster address'],
    ],
    ['a pod', pod('web', { ips: [OLD, 'fd00::00b'] }), ['10.244.2.11', 'fd00::b'], []],
    ['one of two addresses of a pod', pod('web', { ips: [BAD, 'fd00::b'] }), ['fd00::b'], [`status.podIPs[0].ip: ${NO_ADDRESS}`]],
    [
      'an endpoint of the other family',
      slice('web-1', { endpoints: ['10.0.0.1', 'fd00::1'] }),
      ['10.0.0.1'],
      ['endpoints[1].addresses[0]: must be of family IPv4'],
    ],
    ['a pool', v3('IPPool', 'p', { cidr: '10.244.000.0/16' }), ['10.244.0.0/16'], []],
  ])('%s', (...[, manifest, found, refused]) => {
    expect(read(manifest)).toEqual({ found, refused })
  })
})

describe('of a policy', () => {
  const block = (cidr: string, except: readonly string[] = []): Manifest => ({ ipBlock: { cidr, ...(except.length > 0 && { except }) } })
  const closed = (from: readonly Manifest[]): Manifest => kubernetesPolicy('shop/p', { ingress: [{ from }] })

  test('old forms are prefixes like others', () => {
    expect(read(closed([block('10.244.000.0/16', ['10.244.001.0/24']), block('::ffff:10.0.0.0/104')]))).toEqual({
      found: ['ingress 0: allow from nets 10.244.0.0/16 not nets 10.244.1.0/24', 'ingress 0: allow from nets 10.0.0.0/8'],
      refused: [],
    })
  })

  test('a peer whose addresses cannot be read allows nothing, and the others what they say', () => {
    expect(read(closed([block('10.0.0/8'), block('10.0.0.0/8', ['10.1.0.0/16', 'x']), block('192.0.2.0/24')]))).toEqual({
      found: ['ingress 0: allow from nets 192.0.2.0/24'],
      refused: [`spec.ingress[0].from[0].ipBlock.cidr: ${NO_PREFIX}`, `spec.ingress[0].from[1].ipBlock.except[1]: ${NO_PREFIX}`],
    })
  })

  test('a rule that has no peer left is not one for everybody', () => {
    expect(read(closed([block('10.0.0/8')])).found).toEqual(['ingress: none'])
  })

  test('of networks of the cluster’s own policies an allow loses those that cannot be read, and a deny closes', () => {
    const of = (action: string): Manifest => clusterPolicy('p', { egress: [{ action, to: [{ networks: [PREFIXES[0], PREFIXES[2]] }] }] })
    const refused = [`spec.egress[0].to[0].networks[1]: ${NO_PREFIX}`]
    expect(read(of('Accept'))).toEqual({ found: ['egress 0: allow to nets 10.244.2.0/24'], refused })
    expect(read(of('Deny'))).toEqual({ found: ['egress: none'], refused })
  })

  test('rules of our own have the old forms as well, and close where one cannot be read', () => {
    const policy = (net: string): Manifest => v3('NetworkPolicy', 'shop/p', { ingress: [{ action: 'Allow', source: { nets: [net] } }] })
    expect(read(policy('10.244.001.0/24')).found).toEqual(['ingress 0: allow v4 from nets 10.244.1.0/24'])
    expect(read(policy('x'))).toEqual({ found: ['ingress: none'], refused: [`spec.ingress[0].source.nets[0]: ${NO_ADDRESS}`] })
  })
})

test('an IPv4 address inside IPv6 is of IPv4', () => {
  expect(read(slice('web-1', { addressType: 'IPv4', endpoints: [MAPPED] }))).toEqual({ found: ['10.244.1.12'], refused: [] })
  expect(read(slice('web-1', { addressType: 'IPv6', endpoints: [MAPPED] })).refused).toEqual([
    'endpoints[0].addresses[0]: must be of family IPv6',
  ])
})

test('of very many bad addresses the first twenty are named', () => {
  const { found, refused } = read(v3('GlobalNetworkSet', 's', { nets: [...Array.from({ length: 250 }, () => BAD), GOOD] }))
  expect(found).toEqual([`${GOOD}/32`])
  expect([refused.length, refused.at(-2), refused.at(-1)]).toEqual([
    21,
    `spec.nets[19]: ${NO_ADDRESS}`,
    '230 more parts of it are left out',
  ])
})
