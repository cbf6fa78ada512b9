// SPDX-License-Identifier: Apache-2.0
/** Ranges of pods that have addresses of services, nodes or other pools. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { describe } from '#lib/preflight/findings.ts'
import { sharedAddresses } from '#operator/preflight/shared-addresses.ts'

const object = (kind: string, name: string, more: object): ApiObject => asApiObject({ apiVersion: 'v1', kind, metadata: { name }, ...more })
const pool = (cidr: string, more: object = {}, name = 'p'): ApiObject => object('IPPool', name, { spec: { cidr, ...more } })

const NODE = object('Node', 'a', {
  spec: { podCIDRs: ['10.244.0.0/24', 'fd00:244::/64'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.7' }] },
})
const NAMED = { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop', name: 'db' } }
const SERVICES = [
  asApiObject({ ...NAMED, metadata: { namespace: 'shop', name: 'headless' }, spec: { clusterIPs: ['None'] } }),
  asApiObject({ ...NAMED, spec: { clusterIPs: ['10.96.0.10', 'fd00:96::a'] } }),
]

test.each<readonly [string, readonly ApiObject[], readonly string[]]>([
  ['ranges of their own', [pool('10.1.0.0/16')], []],
  ['the range of services', [pool('10.96.0.0/12')], ['pool p 10.96.0.10 (service shop/db)']],
  ['that of IPv6', [pool('fd00:96::/112')], ['pool p fd00:96::a (service shop/db)']],
  ["a node's address", [pool('192.0.2.0/24')], ['pool p 192.0.2.7 (node a)']],
  ['of which pods get none', [pool('10.96.0.0/12', { allowedUses: ['Tunnel'] })], []],
  ['what is no range', [pool('x')], []],
])('%s', (_, pools, wanted) => {
  expect(sharedAddresses({ nodes: [NODE], pools, newPools: [], services: SERVICES }).map(({ args }) => args.join(' '))).toEqual(wanted)
})

test('a range that a node has of Kubernetes counts, and it is told in words', () => {
  const service = asApiObject({ ...NAMED, spec: { clusterIPs: ['10.244.0.9'] } })
  const [found] = sharedAddresses({ nodes: [NODE], pools: [], newPools: [], services: [service] })
  expect(found?.code).toBe('addresses-shared')
  expect(found && describe(found)).toMatch(/^addresses of pods of node a are taken: 10\.244\.0\.9 \(service shop\/db\); give pods/)
})

test('a range that is still to be made is in the way where it has such an address, and the others are not', () => {
  const [old, made] = [pool('10.96.0.0/12', {}, 'old'), pool('192.0.2.0/24', {}, 'new')]
  const found = sharedAddresses({ nodes: [NODE], pools: [old, made], newPools: [made], services: SERVICES })
  expect(found.map(({ code, args }) => [code, ...args].join(' '))).toEqual([
    'addresses-taken pool new 192.0.2.7 (node a)',
    'addresses-shared pool old 10.96.0.10 (service shop/db)',
  ])
})

test.each<readonly [string, readonly string[], readonly string[]]>([
  ['beside each other', ['10.1.0.0/16', '10.2.0.0/16'], []],
  ['one in the other', ['10.1.2.0/24', '10.1.0.0/16'], ['p1 10.1.2.0/24 (pool p0)']],
  ['the same twice', ['10.1.0.0/16', '10.1.0.0/16'], ['p0 10.1.0.0/16 (pool p1)']],
  ['of both families', ['::/0', '10.1.0.0/16'], []],
  ['of IPv6', ['fd00::/48', 'fd00:0:0:7::/64'], ['p0 fd00:0:0:7::/64 (pool p1)']],
])('pools that are %s', (_, cidrs, wanted) => {
  const pools = cidrs.map((cidr, at) => pool(cidr, { allowedUses: ['Tunnel'] }, `p${String(at)}`))
  const told = (newPools: readonly ApiObject[]): readonly string[] =>
    sharedAddresses({ nodes: [], pools, newPools, services: [] }).map(({ code, args }) => [code, ...args].join(' '))
  expect(told([])).toEqual(wanted.map((text) => `addresses-shared pool ${text}`))
  expect(told(pools.slice(1))).toEqual(wanted.map((text) => `addresses-taken pool ${text}`))
})
