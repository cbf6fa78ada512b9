// SPDX-License-Identifier: Apache-2.0
/** The identity of an object; and that no JSON whatsoever breaks a parser. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { identify, parseInSlices, parseObject } from '#lib/kube/parse/parse-object.ts'
import { KINDS } from '#lib/kube/kinds.ts'
import { createInternPool } from '#lib/kube/parse/intern.ts'
import { clusterPolicy, kubernetesPolicy, node, pod, service, slice, v3 } from '../../../support/build.ts'

describe('an object', () => {
  test.each<[unknown, string]>([
    [service('web'), 'Service/default/web'],
    [service('shop/web'), 'Service/shop/web'],
    [{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }, 'Service/default/web'],
    [kubernetesPolicy('shop/web'), 'KubernetesNetworkPolicy/shop/web'],
    [v3('NetworkPolicy', 'shop/web'), 'NetworkPolicy/shop/web'],
    [v3('Tier', 'ops'), 'Tier//ops'],
    [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1.example', namespace: 'default' } }, 'Node//n1.example'],
  ])('%j is %s', (manifest, ref) => {
    const identified = identify(manifest)
    expect(identified.kind === 'ours' && `${identified.ref.kind}/${identified.ref.namespace}/${identified.ref.name}`).toBe(ref)
  })

  test.each([
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } },
    { apiVersion: 'serving.example/v1', kind: 'Service', metadata: { name: 'x' } },
  ])('%j is not our business', (manifest) => {
    expect(identify(manifest)).toEqual({ kind: 'foreign' })
  })

  test.each<[unknown, string, ...string[]]>([
    [1, '', '', 'must be an object'],
    [[], '', '', 'must be an object'],
    [{}, '', 'kind', 'is missing'],
    [{ kind: 'Service' }, '', 'apiVersion', 'is missing'],
    [{ kind: 7 }, '', 'kind', 'must be text'],
    [{ kind: 'Service', apiVersion: 'v1' }, '', 'metadata.name', 'is missing'],
    [
      { kind: 'Service', apiVersion: 'v1', metadata: { name: 'a/b' } },
      '',
      'metadata.name',
      'must be lower-case letters, digits, "-" and "."',
    ],
    [
      { kind: 'Service', apiVersion: 'v1', metadata: { name: 'a', namespace: '..' } },
      '',
      'metadata.namespace',
      'must be lower-case letters, digits, "-" and "."',
    ],
    [
      { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1beta1', metadata: { name: 'a' } },
      'EndpointSlice/default/a',
      'apiVersion',
      'must be discovery.k8s.io/v1',
    ],
    [
      { kind: 'NetworkPolicy', apiVersion: 'networking.k8s.io/v1beta1', metadata: { name: 'a' } },
      'KubernetesNetworkPolicy/default/a',
      'apiVersion',
      'must be networking.k8s.io/v1',
    ],
    [
      { kind: 'ClusterNetworkPolicy', apiVersion: 'policy.networking.k8s.io/v1beta1', metadata: { name: 'a' } },
      'ClusterNetworkPolicy/a',
      'apiVersion',
      'must be policy.networking.k8s.io/v1alpha2',
    ],
    [
      { kind: 'IPReservation', apiVersion: 'netplane.io/v3', metadata: { name: 'a', namespace: 'shop' } },
      'IPReservation/shop/a',
      'kind',
      'is not implemented',
    ],
  ])('%j is refused', (manifest, ref, ...[path, reason]) => {
    expect(identify(manifest)).toMatchObject({ kind: 'rejected', rejected: { ref, path, reason } })
  })
})

test('a pool gives the same text back, and forgets when it is full', () => {
  const { text: intern } = createInternPool(2)
  expect([intern('a'), intern('b'), intern('c'), intern('a')]).toEqual(['a', 'b', 'c', 'a'])
})

describe('parsers never throw', () => {
  const anything = fc.jsonValue({ maxDepth: 4 })

  test('on any JSON', () => {
    fc.assert(
      fc.property(anything, fc.constantFrom(...KINDS), (value, { kind }) => {
        identify(value)
        const parsed = parseObject(value, { kind, namespace: 'default', name: 'default' })
        expect(parsed.kind === 'rejected' ? parsed.rejected.length > 0 : true).toBe(true)
      }),
    )
  })

  test('on good objects with one part replaced by any JSON', () => {
    const good = [
      service('web', {
        type: 'LoadBalancer',
        ports: [{ name: 'a', port: 80, nodePort: 30080 }],
        ingress: [{ ip: '192.0.2.1' }],
        spec: { externalIPs: ['192.0.2.2'], sessionAffinity: 'ClientIP' },
      }),
      slice('web-1', { endpoints: [{ addr: '10.0.0.1', node: 'n1', ready: true }] }),
      pod('a', { node: 'n1', ips: ['10.0.0.1'] }),
      node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.1.0.0/24'] }),
      kubernetesPolicy('p', {
        policyTypes: ['Ingress', 'Egress'],
        ingress: [
          { from: [{ podSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }], ports: [{ port: 80, endPort: 90 }] },
        ],
      }),
      v3('GlobalNetworkPolicy', 'p', {
        selector: 'all()',
        ingress: [{ action: 'Allow', protocol: 'TCP', source: { selector: "a == 'b'" }, destination: { ports: [80, '90:99', 'web'] } }],
      }),
      v3('HostEndpoint', 'h', { node: 'n1', interfaceName: '*', ports: [{ name: 'web', protocol: 'TCP', port: 80 }] }),
      clusterPolicy('c', {
        egress: [{ action: 'Deny', to: [{ networks: ['10.0.0.0/8'] }], protocols: [{ tcp: { destinationPort: { number: 80 } } }] }],
      }),
    ]
    fc.assert(
      fc.property(fc.constantFrom(...good), fc.nat(60), anything, (manifest, at, value) => {
        const broken: unknown = replaceAt(structuredClone(manifest), { left: at }, value)
        const identified = identify(broken)
        if (identified.kind === 'ours') parseObject(broken, identified.ref)
      }),
      { numRuns: 2_000 },
    )
  })
})

/** The value with its n-th part, counted in depth first order, replaced. */
function replaceAt(value: unknown, count: { left: number }, by: unknown): unknown {
  if (count.left-- === 0) return by
  if (Array.isArray(value)) return value.map((part) => replaceAt(part, count, by))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replaceAt(part, count, by)]))
}

const fifty = <T>(one: (at: number) => T): T[] => Array.from({ length: 50 }, (_, at) => one(at))

test.each([
  { what: 'rule of a policy', manifest: kubernetesPolicy('shop/p', { ingress: fifty(() => ({ ports: [{ port: 80 }] })) }) },
  { what: 'rule of a policy of v3', manifest: v3('NetworkPolicy', 'shop/p', { ingress: fifty(() => ({ action: 'Allow' })) }) },
  {
    what: 'peer of a rule',
    manifest: kubernetesPolicy('shop/p', { ingress: [{ from: fifty((at) => ({ ipBlock: { cidr: `10.0.${at}.0/24` } })) }] }),
  },
  { what: 'prefix of a NetworkSet', manifest: v3('NetworkSet', 'shop/s', { nets: fifty((at) => `10.0.${at}.0/24`) }) },
  { what: 'external address', manifest: service('shop/web', { spec: { externalIPs: fifty((at) => `192.0.2.${at}`) } }) },
  {
    what: 'source range',
    manifest: service('shop/web', { type: 'LoadBalancer', spec: { loadBalancerSourceRanges: fifty((at) => `192.0.${at}.0/24`) } }),
  },
  {
    what: 'address of a balancer',
    manifest: service('shop/web', { type: 'LoadBalancer', ingress: fifty((at) => ({ ip: `192.0.2.${at}` })) }),
  },
  { what: 'port of a Service', manifest: service('shop/web', { ports: fifty((at) => ({ name: `p${at}`, port: 1 + at })) }) },
  { what: 'endpoint', manifest: slice('shop/web-1', { endpoints: fifty((at) => `10.0.0.${at}`) }) },
  { what: 'bad endpoint', manifest: slice('shop/web-1', { addressType: 'IPv4', endpoints: fifty(() => '0.0.0.0') }) },
  { what: 'address of a node', manifest: node('n1', { addresses: fifty((at) => `10.0.0.${at}`) }) },
  { what: 'bad prefix of a NetworkSet', manifest: v3('NetworkSet', 'shop/s', { nets: fifty((at) => `10.0.${at}.0/99`) }) },
])('others may have a turn after each $what', ({ manifest }) => {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') throw new Error('not ours')
  const work = parseInSlices(manifest, identified.ref)
  let turns = 0
  for (let step = work.next(); step.done !== true; step = work.next()) turns++
  expect(turns).toBeGreaterThanOrEqual(50)
})
