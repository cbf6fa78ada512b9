// SPDX-License-Identifier: Apache-2.0
/** `netplanectl install endpoint` before a real API server, as a program: what it prints, applies, refuses and checks.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { once } from 'node:events'
import { load } from 'js-yaml'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { check, identityOf, type Identity } from '../../../cli/install/endpoint-check.ts'
import { openCluster } from '../../../cli/install/cluster.ts'
import { Authority } from '../../../testkit/kubernetes/certificates.ts'
import { PORT, type LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { clusterInfo, dataOf, infrastructure, kopsController, kubeadmConfig, node, PLANE, pod } from '../../cli/install/platforms.ts'
import { Relay } from '../relay.ts'
import { BUILD_MS, InstallCluster, NAMESPACE } from './install-cluster.ts'

/** that the server's certificate has, beside 127.0.0.1: no service and no pod has it */
const DIRECT = '10.96.0.250'
const MAP: Named = { apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE, name: 'cluster-services-endpoint' }

let of: InstallCluster
let cluster: LoopbackCluster
let client: ApiClient
let relay: Relay

beforeAll(async () => {
  of = await InstallCluster.start()
  cluster = of.cluster
  client = of.client
  execFileSync('ip', ['addr', 'replace', `${DIRECT}/32`, 'dev', 'lo'])
  // of this mount namespace alone
  writeFileSync(join(of.folder, 'hosts'), '127.0.0.1 localhost tunnel.test\n192.0.2.2 node.test\n10.96.0.1 service.test\n')
  execFileSync('mount', ['--bind', join(of.folder, 'hosts'), '/etc/hosts'])
  relay = await Relay.start(DIRECT, PORT, '127.0.0.1')
}, BUILD_MS)

afterAll(async () => {
  execFileSync('umount', ['/etc/hosts'])
  await relay[Symbol.asyncDispose]()
  await of[Symbol.asyncDispose]()
})

/** With its status, which a server keeps apart. */
async function plant(...objects: readonly ApiObject[]): Promise<void> {
  for (const object of objects) {
    await of.drop(namedOf(object))
    await client.create(object)
    const { apiVersion, kind, metadata, status } = object
    if (status !== undefined)
      await client.patch(namedOf(object), { apiVersion, kind, metadata, status }, { type: 'merge', subresource: 'status' })
  }
}

function endpointIn(output: string): unknown {
  const object: unknown = load(output)
  return isObject(object) ? object['data'] : undefined
}

/** The real server's own. */
function certificate(name: string): Buffer {
  return readFileSync(join(of.folder, 'certificates', name))
}

function containing(part: string): unknown {
  return expect.stringContaining(part)
}

const FOUND = { CLUSTER_SERVICE_HOST: DIRECT, CLUSTER_SERVICE_PORT: String(PORT) }

describe('install endpoint', () => {
  beforeEach(async () => {
    await of.drop(MAP, { apiVersion: 'v1', kind: 'Node', name: 'm2' })
    await plant(node('m1', [DIRECT], PLANE), kubeadmConfig(undefined))
  })

  test('of the only control-plane node the map is printed, checked and warned of, and nothing is made', async () => {
    const { code, out, err } = await of.netplanectl('install', 'endpoint')
    expect(err.split('\n')).toEqual([
      'platform: Generic (found by version and nodes), kubeadm and the like',
      `address: ${DIRECT}:${PORT}, address of node m1, the only one with an API server`,
      containing(`warning: ${DIRECT} is the address of a node: it must be static`),
      expect.stringMatching(/^checked: answers with the cluster's authority, as this cluster, v1\.\d+/),
      `warning: namespace ${NAMESPACE} is not there: --apply makes it too`,
      '',
    ])
    expect(code).toBe(0)
    expect(load(out)).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: MAP.name, namespace: NAMESPACE }, data: FOUND })
    expect(of.kubectl('get', 'namespaces', '-o', 'name')).not.toContain(NAMESPACE)
  })

  test('--apply makes namespace and map, and the second time changes nothing', async () => {
    const first = await of.netplanectl('install', 'endpoint', '--apply')
    expect(first).toMatchObject({ code: 0, out: `namespace ${NAMESPACE} made\nconfig map ${NAMESPACE}/${MAP.name} applied\n` })
    const made = await client.get(MAP)
    expect(dataOf(made)).toEqual(FOUND)
    expect(made.metadata['managedFields']).toMatchObject([{ manager: 'netplanectl-install', operation: 'Apply' }])
    expect(await of.netplanectl('install', 'endpoint', '--apply')).toMatchObject({
      code: 0,
      out: `config map ${NAMESPACE}/${MAP.name} applied\n`,
    })
    expect((await client.get(MAP)).metadata.resourceVersion).toBe(made.metadata.resourceVersion)
  })

  test('--namespace, and what is printed is what kubectl takes', async () => {
    const { out } = await of.netplanectl('install', 'endpoint', '--namespace', 'kube-system')
    writeFileSync(join(of.folder, 'map.yaml'), out)
    of.kubectl('apply', '-f', join(of.folder, 'map.yaml'))
    expect(dataOf(await client.get({ ...MAP, namespace: 'kube-system' }))).toEqual(FOUND)
    const { out: json } = await of.netplanectl('install', 'endpoint', '--namespace', 'kube-system', '--json')
    expect(JSON.parse(json)).toMatchObject({ metadata: { namespace: 'kube-system' }, data: FOUND })
  })

  test('a map that another client has made otherwise stays, and the message names it', async () => {
    const data = { ...FOUND, CLUSTER_SERVICE_HOST: 'api.example.com' }
    await client.apply(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: NAMESPACE, name: MAP.name }, data },
      { fieldManager: 'terraform' },
    )
    const { code, out, err } = await of.netplanectl('install', 'endpoint', '--apply')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain('conflict with "terraform"')
    expect(dataOf(await client.get(MAP))).toEqual(data)
  })

  test('several control-plane nodes without controlPlaneEndpoint are refused with what to do', async () => {
    await plant(node('m2', ['192.0.2.2'], PLANE))
    const { code, out, err } = await of.netplanectl('install', 'endpoint')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain('2 nodes have API servers: put a load balancer before them, and give its address, as controlPlaneEndpoint')
  })

  test.each([
    ['127.0.0.1:6443', 'is a loopback address'],
    ['localhost:6443', 'is a loopback address'],
    ['10.96.0.1:443', 'is the ClusterIP of service default/kubernetes'],
    ['10.96.0.77', 'is the address of pod shop/web'],
    ['fd00:7::7', 'is the address of pod shop/six'],
    ['192.0.2.2', 'is the address of node m2 alone, and 2 nodes have API servers'],
  ])('controlPlaneEndpoint %s is refused, also without a check: %s', async (endpoint, reason) => {
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    const spec = { containers: [{ name: 'c', image: 'i' }] }
    await plant(node('m2', ['192.0.2.2'], PLANE), pod('web', '10.96.0.77', spec), pod('six', 'fd00:7::7', spec), kubeadmConfig(endpoint))
    for (const flags of [[], ['--no-check'], ['--apply']]) {
      const { code, out, err } = await of.netplanectl('install', 'endpoint', ...flags)
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(err).toContain(reason)
    }
    await of.drop(...['web', 'six'].map((name) => ({ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name })))
  })

  test('a closed port is refused, and taken unasked', async () => {
    await plant(kubeadmConfig(`${DIRECT}:7777`))
    const asked = await of.netplanectl('install', 'endpoint', '--apply')
    expect(asked).toMatchObject({ code: 1, out: '', err: containing('ECONNREFUSED') })
    const { code, out, err } = await of.netplanectl('install', 'endpoint', '--no-check')
    expect(code).toBe(0)
    expect(err).toContain('not checked: --no-check')
    expect(endpointIn(out)).toEqual({ ...FOUND, CLUSTER_SERVICE_PORT: '7777' })
  })

  test.each([
    ['192.0.2.100', 'ENETUNREACH'],
    ['lb.invalid', 'lb.invalid is no name here'],
  ])('%s cannot be asked from here: a warning', async (host, reason) => {
    await plant(kubeadmConfig(`${host}:6443`))
    const { code, out, err } = await of.netplanectl('install', 'endpoint')
    expect(code).toBe(0)
    expect(err).toMatch(/^warning: not checked/m)
    expect(err).toContain(reason)
    expect(endpointIn(out)).toEqual({ ...FOUND, CLUSTER_SERVICE_HOST: host })
  })

  test('the authority is the one that pods know', async () => {
    const other = await Authority.make(mkdtempSync(join(of.folder, 'other-')))
    const root = (file: string): ApiObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'kube-root-ca.crt' },
      data: { 'ca.crt': readFileSync(file, 'utf8') },
    })
    await plant(root(other.certificate))
    expect(await of.netplanectl('install', 'endpoint')).toMatchObject({ code: 1, out: '', err: containing('certificate') })
    await plant(root(cluster.authority))
    expect(await of.netplanectl('install', 'endpoint')).toMatchObject({ code: 0, err: containing('checked: ') })
  })

  test('another cluster with the same authority is refused by its UID', async () => {
    const server = createServer({ cert: certificate('apiserver.crt'), key: certificate('apiserver.key') }, (_, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'another' } }))
    })
    server.listen(7443, DIRECT)
    await once(server, 'listening')
    try {
      await plant(kubeadmConfig(`${DIRECT}:7443`))
      const { code, out, err } = await of.netplanectl('install', 'endpoint')
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(err).toContain('it is another cluster: UID another of namespace kube-system')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test.each([
    ['nothing', undefined],
    ['no object of an API', 'hello'],
  ])('a server that says %s is refused', async (_title, said) => {
    const server = createServer({ cert: certificate('apiserver.crt'), key: certificate('apiserver.key') }, (request, response) => {
      if (said === undefined) request.socket.destroy()
      else response.end(said)
    })
    server.listen(7443, DIRECT)
    await once(server, 'listening')
    try {
      await plant(kubeadmConfig(`${DIRECT}:7443`))
      expect(await of.netplanectl('install', 'endpoint')).toMatchObject({ code: 1, out: '' })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('one that takes connections and goes on to say nothing is a warning', async () => {
    await using mute = await Relay.start(DIRECT, 7444)
    await plant(kubeadmConfig(`${DIRECT}:7444`))
    const { code, err } = await of.netplanectl('install', 'endpoint')
    expect({ code, connections: mute.connections > 0 }).toEqual({ code: 0, connections: true })
    expect(err).toMatch(/^warning: not checked: nothing answers here: .*no answer in 5000 ms/m)
  })

  test.each([
    ['node.test', 1, 'its only address 192.0.2.2 is the address of node m2 alone, and 2 nodes have API servers'],
    ['service.test', 1, 'its only address 10.96.0.1 is the ClusterIP of service default/kubernetes'],
    ['tunnel.test', 0, 'warning: not checked: tunnel.test is this machine (127.0.0.1)'],
  ])('%s is judged by what it means here', async (host, code, said) => {
    await plant(node('m2', ['192.0.2.2'], PLANE), kubeadmConfig(`${host}:6443`))
    expect(await of.netplanectl('install', 'endpoint')).toMatchObject({ code, err: containing(said) })
  })

  test('every address of a name is asked, and one that is wrong spoils all', async () => {
    await using opened = await openCluster({
      connection: { kubeconfig: cluster.kubeconfig(), context: undefined, config: undefined },
      allowMismatch: false,
    })
    const identity: Identity = await identityOf(opened)
    const candidate = { host: 'kubernetes.default.svc', port: PORT, by: '', warnings: [] }
    const state = async (...addresses: readonly string[]): Promise<string> =>
      (await check(candidate, { addresses, identity, server: opened.server })).state
    execFileSync('ip', ['addr', 'add', '10.96.0.251/32', 'dev', 'lo'])
    expect(await state(DIRECT)).toBe('right')
    expect(await state(DIRECT, '192.0.2.7')).toBe('right')
    expect(await state(DIRECT, '10.96.0.251')).toBe('wrong')
    expect(await state('192.0.2.7')).toBe('unknown')
    expect(await state('127.0.1.1')).toBe('unknown')
  })

  test('kOps is found by its nodes', async () => {
    await plant(
      node('m1', [DIRECT], { ...PLANE, 'kops.k8s.io/instancegroup': 'control-plane-a' }),
      kopsController({ clusterName: 'k8s.invalid' }),
    )
    const { code, out, err } = await of.netplanectl('install', 'endpoint')
    expect(code).toBe(0)
    expect(err).toContain('platform: KOPS (found by version and nodes), kOps\n')
    expect(endpointIn(out)).toEqual({ CLUSTER_SERVICE_HOST: 'api.internal.k8s.invalid', CLUSTER_SERVICE_PORT: '443' })
  })

  test('a tunnel in the kubeconfig of a managed cluster is passed over for what is published', async () => {
    await of.drop(namedOf(clusterInfo('x')))
    expect(await of.netplanectl('install', 'endpoint', '--platform', 'aks')).toMatchObject({
      code: 1,
      err: containing('127.0.0.1:6443, server of the kubeconfig in use: is a loopback address'),
    })
    await plant(clusterInfo(`https://${DIRECT}:${PORT}`))
    const { code, out, err } = await of.netplanectl('install', 'endpoint', '--platform', 'aks')
    expect(code).toBe(0)
    expect(err).toContain('warning: 127.0.0.1:6443, server of the kubeconfig in use: is a loopback address')
    expect(endpointIn(out)).toEqual(FOUND)
  })

  test('OpenShift without its kinds is refused, and with them the name that pods can verify is taken', async () => {
    expect(await of.netplanectl('install', 'endpoint', '--platform', 'OpenShift')).toMatchObject({
      code: 1,
      err: containing('Infrastructure cluster tells no URL of the API server'),
    })
    await defineInfrastructure()
    await plant(infrastructure({ apiServerURL: `https://${DIRECT}:7777`, apiServerInternalURI: `https://${DIRECT}:${PORT}` }))
    const { code, out, err } = await of.netplanectl('install', 'endpoint', '--platform', 'OpenShift')
    expect(code).toBe(0)
    expect(err).toContain(`warning: ${DIRECT}:7777, status.apiServerURL of Infrastructure cluster: `)
    expect(endpointIn(out)).toEqual(FOUND)
  })

  test('MKE has its proxy, which is on nodes alone', async () => {
    const { code, out, err } = await of.netplanectl('install', 'endpoint', '--platform', 'MKE')
    expect(code).toBe(0)
    expect(err).toContain('warning: not checked')
    expect(endpointIn(out)).toEqual({ CLUSTER_SERVICE_HOST: 'proxy.local', CLUSTER_SERVICE_PORT: '6444' })
  })
})

/** The kind as that platform has it, as far as it is read. */
async function defineInfrastructure(): Promise<void> {
  const names = { kind: 'Infrastructure', listKind: 'InfrastructureList', plural: 'infrastructures', singular: 'infrastructure' }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const versions = [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }]
  await client.create({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'infrastructures.config.openshift.io',
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/openshift/api/pull/470' },
    },
    spec: { group: 'config.openshift.io', names, scope: 'Cluster', versions },
  })
  of.kubectl('wait', '--for=condition=Established', 'crd/infrastructures.config.openshift.io', '--timeout=30s')
}
