// SPDX-License-Identifier: Apache-2.0
/** Findings about an endpoint's addresses, given or resolved by nodes. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { describe } from '#lib/preflight/findings.ts'
import type { Facts } from '#lib/preflight/report.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { endpointFindings } from '#operator/preflight/endpoint-findings.ts'

const FACTS = { provider: 'Generic', hasKubeProxy: false, installed: undefined } as const
const object = (kind: string, name: string, more: object): ApiObject => asApiObject({ apiVersion: 'v1', kind, metadata: { name }, ...more })
const plane = (name: string, address: string): ApiObject => ({
  ...object('Node', name, { spec: { podCIDR: '10.244.0.0/24' }, status: { addresses: [{ type: 'InternalIP', address }] } }),
  metadata: { name, labels: { 'node-role.kubernetes.io/control-plane': '' } },
})
const TWO = [plane('cp-1', '192.0.2.11'), plane('cp-2', '192.0.2.12')]
const ONE = TWO.slice(0, 1)
const POOLS = [object('IPPool', 'default', { spec: { cidr: '10.28.0.0/16' } })]

interface Asked {
  readonly nodes?: readonly ApiObject[]
  readonly cni?: 'Netplane' | 'None'
  readonly endpointPods?: readonly ApiObject[]
}

/** "code host whose"; `told`: the addresses that each node has found, undefined: they have not answered. */
function said(
  host: string,
  told: readonly string[] | undefined,
  { nodes = TWO, cni = 'Netplane', endpointPods = [] }: Asked = {},
): readonly string[] {
  const computed = computeInstallation(installationSpec.read({ cni: { type: cni } }), FACTS)
  const facts = told && new Map(told.map((addresses, at): [string, Facts] => [`n${at}`, addresses === '' ? {} : { addresses }]))
  return endpointFindings({ endpoint: { host, port: '6443' }, computed, nodes, pools: POOLS, endpointPods }, facts).map(({ code, args }) =>
    [code, ...args].join(' '),
  )
}

test('an address is judged before any node has answered', () => {
  expect(said('192.0.2.11', undefined)).toEqual(['endpoint-one-node 192.0.2.11 cp-1'])
  expect(said('::ffff:192.0.2.11', undefined)).toEqual(['endpoint-one-node ::ffff:192.0.2.11 cp-1'])
  expect(said('192.0.2.11', undefined, { nodes: ONE })).toEqual(['endpoint-only-node 192.0.2.11 cp-1'])
  expect(said('10.244.0.9', undefined)).toEqual(['endpoint-pod 10.244.0.9 pods of node cp-1'])
  expect(said('10.28.0.9', undefined)).toEqual(['endpoint-pod 10.28.0.9 pool default'])
  expect(said('192.0.2.100', undefined)).toEqual([])
})

test('pools of ours are not of pods that another plugs in', () => {
  expect(said('10.28.0.9', undefined, { cni: 'None' })).toEqual([])
})

test('an address that a pod of another plugin has is told with the pod', () => {
  const status = { podIPs: [{ ip: '172.30.0.9' }] }
  const pod = (spec: object): ApiObject => ({ ...object('Pod', 'api', { spec, status }), metadata: { name: 'api', namespace: 'cp' } })
  const asked = (spec: object) => said('172.30.0.9', undefined, { cni: 'None', endpointPods: [pod(spec)] })
  expect(asked({})).toEqual(['endpoint-pod 172.30.0.9 cp/api'])
  expect(asked({ hostNetwork: true })).toEqual([])
})

test('a name is what it means to the nodes, once they have answered', () => {
  expect(said('cp-1', undefined)).toEqual([])
  expect(said('cp-1', ['127.0.1.1', '192.0.2.11', '192.0.2.11'])).toEqual(['endpoint-one-node cp-1 (127.0.1.1, 192.0.2.11) cp-1'])
  expect(said('cp-1.example.com', ['192.0.2.11', '192.0.2.11'])).toEqual(['endpoint-one-node cp-1.example.com (192.0.2.11) cp-1'])
  expect(said('api', ['192.0.2.100,10.244.0.9'])).toEqual(['endpoint-pod api (10.244.0.9) pods of node cp-1'])
})

test('a name of all of them, of a balancer, of the only one, or of each node itself is fine', () => {
  expect(said('api', ['192.0.2.11,192.0.2.12', '192.0.2.12,192.0.2.11'])).toEqual([])
  // a resolver that gives one after the other
  expect(said('api', ['192.0.2.11', '192.0.2.12'])).toEqual([])
  expect(said('api', ['192.0.2.100'])).toEqual([])
  expect(said('cp-1', ['192.0.2.11'], { nodes: ONE })).toEqual([])
  expect(said('proxy.local', ['127.0.0.1', '127.0.0.1'])).toEqual([])
})

test('what a node says that is no address is left out', () => {
  expect(said('api', ['', 'x,192.0.2.11'])).toEqual(['endpoint-one-node api (192.0.2.11) cp-1'])
})

test('without an endpoint there is no finding', () => {
  const computed = computeInstallation(installationSpec.read({}), FACTS)
  expect(endpointFindings({ endpoint: undefined, computed, nodes: TWO, pools: POOLS, endpointPods: [] }, new Map())).toEqual([])
})

test('it says what to do', () => {
  expect(describe({ code: 'endpoint-pod', args: ['api (10.28.0.9)', 'pool default'] })).toBe(
    "api (10.28.0.9) is an address that pods get (pool default), and another pod may have it tomorrow; set CLUSTER_SERVICE_HOST to the API server's own address or that of its load balancer: netplanectl install endpoint",
  )
})
