// SPDX-License-Identifier: Apache-2.0
/** Where each platform's API server is found, from objects as that platform has them. Layer: test. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { PROVIDERS } from '#lib/kube/schema/installation.ts'
import { PLATFORMS, providerOf, type Provider } from '#lib/render/providers.ts'
import { renderEndpoint } from '#lib/render/render.ts'
import { readEndpoint } from '#operator/run/endpoint.ts'
import { ROWS, rowsTable, type Candidate, type Facts } from '../../../cli/install/rows.ts'
import { apiServers, clusterInfo, infrastructure, kopsController, kubeadmConfig, node, PLANE } from './platforms.ts'

const SERVER = { protocol: 'https:', host: 'kube.example.com', port: 443, prefix: '' } as const
const ONE = [node('m1', ['192.0.2.1'], PLANE), node('w1', ['192.0.2.11'])]
/** The namespace is the one that the operator reads. */
const BY_HAND =
  'make the config map by hand: kubectl -n netplane-operator create configmap cluster-services-endpoint ' +
  '--from-literal=CLUSTER_SERVICE_HOST=HOST --from-literal=CLUSTER_SERVICE_PORT=PORT'
const THREE = [...ONE, node('m2', ['192.0.2.2'], PLANE), node('m3', ['192.0.2.3'], { 'node-role.kubernetes.io/master': '' })]

interface World {
  readonly nodes?: readonly ApiObject[]
  readonly objects?: readonly ApiObject[]
  readonly server?: Facts['server']
}

/** What a row reads is looked for among the objects by kind and name, as a server would. */
function find(provider: Provider, { nodes = [], objects = [], server = SERVER }: World): readonly Candidate[] {
  const { reads, find: candidates } = ROWS[provider]
  const read = reads.map(({ apiVersion, kind, namespace, name }) =>
    objects.find(
      (one) => one.apiVersion === apiVersion && one.kind === kind && one.metadata.namespace === namespace && one.metadata.name === name,
    ),
  )
  return candidates({ nodes, objects: read, server, namespace: 'netplane-operator' })
}

/** Each of them has to be one that the operator takes. */
function placesOf(candidates: readonly Candidate[]): readonly string[] {
  return candidates.map(({ host, port }) => {
    expect(readEndpoint(renderEndpoint('netplane-operator', { host, port: String(port) }))).toEqual({
      endpoint: { host, port: String(port) },
    })
    return `${host} ${port}`
  })
}

describe('kubeadm', () => {
  test.each([
    ['lb.example.com:8443', 'lb.example.com 8443'],
    ['lb.example.com:443', 'lb.example.com 443'],
    ['lb.example.com', 'lb.example.com 6443'],
    ['192.0.2.100', '192.0.2.100 6443'],
    ['[2001:db8::100]:6444', '2001:db8::100 6444'],
    ['2001:db8::100', '2001:db8::100 6443'],
  ])('controlPlaneEndpoint %s is %s', (endpoint, place) => {
    const [found, ...more] = find('Generic', { nodes: THREE, objects: [kubeadmConfig(endpoint), apiServers(['192.0.2.1', '192.0.2.2'])] })
    expect([found, ...more].length).toBe(1)
    expect(placesOf(found === undefined ? [] : [found])).toEqual([place])
    expect(found).toMatchObject({ by: 'controlPlaneEndpoint of config map kube-system/kubeadm-config', warnings: [] })
  })

  test('without a port it is that of the API servers', () => {
    expect(placesOf(find('Generic', { nodes: THREE, objects: [kubeadmConfig('lb'), apiServers(['192.0.2.1'], 7443)] }))).toEqual([
      'lb 7443',
    ])
  })

  test('the address of the only control-plane node is taken with a warning, also as a controlPlaneEndpoint', () => {
    const objects = [kubeadmConfig(undefined), apiServers(['192.0.2.1'], 7443)]
    const [found] = find('Generic', { nodes: ONE, objects })
    expect(found).toMatchObject({ host: '192.0.2.1', port: 7443, by: 'address of node m1, the only one with an API server' })
    expect(found?.warnings).toEqual([expect.stringContaining('192.0.2.1 is the address of a node: it must be static')])
    expect(find('Generic', { nodes: ONE, objects: [kubeadmConfig('192.0.2.1:6443')] })[0]?.warnings).toEqual([
      expect.stringContaining('it must be static'),
    ])
  })

  test('of several addresses of a node it is the one that the API server tells of', () => {
    const nodes = [node('m1', ['198.51.100.1', '2001:db8::1'], PLANE)]
    expect(placesOf(find('Generic', { nodes, objects: [apiServers(['2001:db8:0::1'])] }))).toEqual(['2001:db8::1 6443'])
    expect(placesOf(find('Generic', { nodes }))).toEqual(['198.51.100.1 6443'])
  })

  test.each([
    ['several control-plane nodes', { nodes: THREE }, '3 nodes have API servers: put a load balancer before them, and give its address'],
    ['no control-plane node', { nodes: [node('w1', ['192.0.2.11'])] }, `no node with the label of a control plane: ${BY_HAND}`],
    ['one without an address', { nodes: [node('m1', [], PLANE)] }, 'node m1, which has the API server, tells no address'],
  ])('%s without controlPlaneEndpoint: refused with what to do', (_title, world, message) => {
    expect(() => find('Generic', { ...world, objects: [kubeadmConfig(undefined)] })).toThrow(message)
  })

  test('a controlPlaneEndpoint that is no place is refused', () => {
    expect(() => find('Generic', { objects: [kubeadmConfig('https://lb:6443')] })).toThrow('"https://lb:6443" is neither a host nor')
  })
})

describe('kOps', () => {
  test.each([
    [{ clusterName: 'k8s.example.com', configBase: 's3://state/k8s.example.com' }, 'api.internal.k8s.example.com 443'],
    [{ configBase: 's3://state/old.example.com' }, 'api.internal.old.example.com 443'],
    [{ configBase: 's3://state/old.example.com/' }, 'api.internal.old.example.com 443'],
  ])('kops-controller with %j says %s', (config, place) => {
    const found = find('KOPS', { objects: [kopsController(config)] })
    expect(placesOf(found)).toEqual([place])
    expect(found[0]?.warnings).toEqual([])
  })

  test('a name of gossip is warned of', () => {
    expect(find('KOPS', { objects: [kopsController({ clusterName: 'dev.k8s.local' })] })[0]).toMatchObject({
      host: 'api.internal.dev.k8s.local',
      warnings: [expect.stringContaining('only /etc/hosts of the nodes knows')],
    })
  })

  test('without it there is nothing to tell', () => {
    expect(() => find('KOPS', {})).toThrow('there is no cluster name in config map kube-system/kops-controller')
  })
})

describe('OpenShift', () => {
  const urls = { apiServerURL: 'https://api.prod.example.com:6443', apiServerInternalURI: 'https://api-int.prod.example.com:6443' }

  test('the public name comes first, then the one of the nodes', () => {
    expect(placesOf(find('OpenShift', { objects: [infrastructure(urls)] }))).toEqual([
      'api.prod.example.com 6443',
      'api-int.prod.example.com 6443',
    ])
    expect(placesOf(find('OpenShift', { objects: [infrastructure({ ...urls, apiServerURL: '' })] }))).toEqual([
      'api-int.prod.example.com 6443',
    ])
  })

  test('without either it is refused', () => {
    expect(() => find('OpenShift', { objects: [infrastructure({})] })).toThrow('tells no URL of the API server')
  })
})

describe.each(['AKS', 'EKS'] as const)('%s', (provider) => {
  const host = 'prod-3f2a.hcp.westeurope.azmk8s.io'

  test('the server of the kubeconfig, then the published one', () => {
    expect(placesOf(find(provider, { server: { ...SERVER, host } }))).toEqual([`${host} 443`])
    expect(
      placesOf(find(provider, { server: { ...SERVER, host: '127.0.0.1', port: 8443 }, objects: [clusterInfo(`https://${host}:443`)] })),
    ).toEqual(['127.0.0.1 8443', `${host} 443`])
    expect(placesOf(find(provider, { objects: [clusterInfo('https://[2001:db8::7]')] })).at(-1)).toBe('2001:db8::7 443')
  })

  test.each([
    ['a path', { ...SERVER, prefix: '/k8s/clusters/c-1' }, 'https://kube.example.com:443/k8s/clusters/c-1'],
    ['no TLS', { ...SERVER, protocol: 'http:' as const }, 'http://kube.example.com:443'],
    ['no TLS at an address', { ...SERVER, protocol: 'http:' as const, host: '2001:db8::7' }, 'http://[2001:db8::7]:443'],
  ])('a server with %s is a proxy', (_title, server, message) => {
    expect(() => find(provider, { server })).toThrow(`the server of the kubeconfig in use is a proxy (${message})`)
    expect(placesOf(find(provider, { server, objects: [clusterInfo(`https://${host}`)] }))).toEqual([`${host} 443`])
  })
})

test('MKE has a proxy on each node', () => {
  expect(placesOf(find('MKE', {}))).toEqual(['proxy.local 6444'])
  expect(PROVIDERS.filter((provider) => ROWS[provider].perNode === true)).toEqual(['MKE'])
})

test.each([
  ['v1.34.4', {}, 'Generic'],
  ['v1.34.4', { 'kops.k8s.io/instancegroup': 'nodes-a' }, 'KOPS'],
  ['v1.34.4', { 'node.openshift.io/os_id': 'rhel' }, 'OpenShift'],
  ['v1.34.4', { 'kubernetes.azure.com/cluster': 'MC_prod' }, 'AKS'],
  ['v1.34.4-eks-1a2b3c4', {}, 'EKS'],
  ['v1.34.4-mirantis-1', {}, 'MKE'],
  ['v1.34.4+rke2r1', {}, 'RKE2'],
] as const)('%s with labels %j is %s', (version, labels, provider) => {
  expect(providerOf(version, [node('n0', ['192.0.2.1']), node('n1', ['192.0.2.2'], labels)])).toBe(provider)
})

test('the version is enough where no node is there yet', () => {
  expect(providerOf('v1.34.4-eks-1a2b3c4', [])).toBe('EKS')
  expect(providerOf('v1.34.4', [])).toBe('Generic')
})

test('a document that is none is refused by its place', () => {
  const broken = { ...kubeadmConfig('x'), data: { ClusterConfiguration: 'a: [' } }
  expect(() => find('Generic', { objects: [broken] })).toThrow('config map kube-system/kubeadm-config: ClusterConfiguration is no YAML')
})

test('the page has the rows, and says which platforms need a name server', () => {
  const page = readFileSync(new URL('../../../docs/platforms/README.md', import.meta.url), 'utf8')
  expect(page).toContain(`\n${rowsTable().join('\n')}\n`)
  const needing = PROVIDERS.filter((provider) => PLATFORMS[provider].nameserver !== undefined)
  expect(page).toContain(`\`install dns\` (${needing.map((name) => `\`${name}\``).join(', ')})`)
})
