// SPDX-License-Identifier: Apache-2.0
/** What a real API server says in Protocol Buffers means to our parsers what it says in JSON. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { PROTOBUF } from '#lib/api/decode/envelopes.ts'
import { asApiObject, collectionPath } from '#lib/api/resource.ts'
import type { Message } from '#lib/api/decode/protobuf.ts'
import { WATCHED, type WatchedKind } from '#lib/api/watch/watch-list.ts'
import { isObject } from '#lib/base/object.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'

const BUILD_MS = 30 * 60_000
const CODED = WATCHED.filter(({ message }) => message !== undefined)

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

const metadata = (name: string, more: object = {}): object => ({ name, namespace: 'default', ...more })
const service = (name: string, spec: object, more?: object): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: metadata(name, more),
  spec: { ports: [{ name: 'web', port: 80, targetPort: 'http' }], ...spec },
})
const pod = (name: string, spec: object, more?: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: metadata(name, more),
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
})

/** Every field that some parser asks for, set and not set. */
const OBJECTS: readonly object[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata('default', { labels: { team: 'a' } }) },
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'labelled', labels: { team: 'a', empty: '' }, annotations: { note: 'äöü ✓', 'cni.netplane.io/ipv4pools': '["p"]' } },
  },
  service('plain', { ports: [{ port: 80 }] }),
  service('named', {
    internalTrafficPolicy: 'Local',
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 77 } },
  }),
  service('node-port', {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    externalIPs: ['198.51.100.7'],
    ports: [{ port: 53, protocol: 'UDP', targetPort: 5353, nodePort: 30053 }],
  }),
  service(
    'balanced',
    { type: 'LoadBalancer', externalTrafficPolicy: 'Local', loadBalancerSourceRanges: ['203.0.113.0/24'], publishNotReadyAddresses: true },
    { annotations: { 'netplane.io/backend-selection': 'Maglev' } },
  ),
  service('headless', { clusterIP: 'None' }, { labels: { 'service.kubernetes.io/headless': '' } }),
  { ...service('elsewhere', {}), spec: { type: 'ExternalName', externalName: 'example.org' } },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: metadata('slice', {
      labels: { 'kubernetes.io/service-name': 'plain' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-02T03:04:05Z' },
    }),
    addressType: 'IPv4',
    ports: [{ name: 'web', port: 8080 }, { name: 'dns', port: 53, protocol: 'UDP' }, { name: 'all' }],
    endpoints: [
      { addresses: ['10.0.0.1'] },
      { addresses: ['10.0.0.2'], conditions: { ready: false, serving: true, terminating: true }, nodeName: 'n1', zone: 'z' },
      { addresses: ['10.0.0.3'], conditions: { ready: true }, hints: { forZones: [{ name: 'z' }], forNodes: [{ name: 'n1' }] } },
    ],
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: metadata('six'),
    addressType: 'IPv6',
    ports: [],
    endpoints: [{ addresses: ['fd00::1'] }],
  },
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'bare' } },
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z' } },
    spec: {
      podCIDR: '10.1.0.0/24',
      podCIDRs: ['10.1.0.0/24', 'fd00:1::/64'],
      taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }],
    },
  },
  pod('plain', { nodeName: 'n1' }),
  pod('host', { nodeName: 'n1', hostNetwork: true, serviceAccountName: 'default' }),
  pod(
    'ports',
    {
      nodeName: 'n1',
      containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 80 }, { containerPort: 81 }] }],
      initContainers: [
        { name: 'init', image: 'i', ports: [{ name: 'setup', containerPort: 82 }] },
        { name: 'side', image: 'i', restartPolicy: 'Always', ports: [{ name: 'dns', containerPort: 53, protocol: 'UDP' }] },
      ],
    },
    { labels: { app: 'web' }, annotations: { 'cni.netplane.io/ipAddrs': '["10.0.0.9"]' }, finalizers: ['example.org/stays'] },
  ),
]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-protobuf-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  for (const object of OBJECTS) await client.create(asApiObject(object))
  const status = { type: 'merge', subresource: 'status' } as const
  const [v1, inDefault] = [{ apiVersion: 'v1' } as const, { namespace: 'default' } as const]
  const ips = [{ ip: '10.0.0.9' }, { ip: 'fd00::9' }]
  await client.patch(
    { ...v1, kind: 'Pod', ...inDefault, name: 'ports' },
    { status: { phase: 'Running', startTime: '2026-01-02T03:04:05Z', podIP: '10.0.0.9', podIPs: ips } },
    status,
  )
  const addresses = [
    { type: 'InternalIP', address: '192.0.2.1' },
    { type: 'Hostname', address: 'n1' },
  ]
  await client.patch({ ...v1, kind: 'Node', name: 'n1' }, { status: { addresses } }, status)
  const ingress = [{ ip: '203.0.113.5' }, { ip: '203.0.113.6', ipMode: 'Proxy' }, { hostname: 'lb.example.org' }]
  await client.patch({ ...v1, kind: 'Service', ...inDefault, name: 'balanced' }, { status: { loadBalancer: { ingress } } }, status)
  // it stays for its finalizer
  await client.delete({ ...v1, kind: 'Pod', ...inDefault, name: 'ports' }, { gracePeriodSeconds: 0 })
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** As parsers read it, by name. */
function parsed({ entry }: WatchedKind, items: readonly unknown[]): Map<string, unknown> {
  return new Map(
    items.map((item) => {
      const { metadata: said } = isObject(item) ? item : {}
      const { name = '', namespace = '', resourceVersion } = isObject(said) ? said : {}
      const ref = { kind: entry.kind, namespace: String(namespace), name: String(name) }
      return [`${ref.namespace}/${ref.name}`, { parsed: parseObject(item, ref), resourceVersion }]
    }),
  )
}

test('the server has these kinds so', async () => {
  expect(CODED.map(({ kind }) => kind)).toEqual(['Service', 'EndpointSlice', 'Pod', 'Namespace', 'Node', 'ServiceAccount'])
  for (const watched of CODED) {
    const request = {
      method: 'GET',
      path: collectionPath(watched),
      headers: { accept: PROTOBUF },
      signal: AbortSignal.timeout(10_000),
    } as const
    const { headers, body } = await client.transport.request(request)
    body.resume()
    expect(headers['content-type']).toBe(PROTOBUF)
  }
})

test.each(CODED.map((watched) => [watched.kind, watched] as const))('%s: lists', async (_, watched) => {
  const read = async (message: WatchedKind['message']): Promise<Map<string, unknown>> => {
    const items: unknown[] = []
    // pages of two: the token of the next one is read as well
    for await (const page of client.pages(watched, { limit: 2, message })) items.push(...page.items)
    return parsed(watched, items)
  }
  const [coded, text] = [await read(watched.message), await read(undefined)]
  expect(text.size).toBeGreaterThanOrEqual(OBJECTS.filter((object) => Reflect.get(object, 'kind') === watched.kind).length)
  expect(coded).toEqual(text)
})

test.each(CODED.map((watched) => [watched.kind, watched] as const))('%s: watches', async (_, watched) => {
  const stop = new AbortController()
  const read = async (message: WatchedKind['message']): Promise<Map<string, unknown>> => {
    const items: unknown[] = []
    // from the beginning: all that is there comes as events
    const options = { resourceVersion: '0', timeoutSeconds: 1, message, signal: stop.signal }
    for await (const batch of client.watch(watched, options))
      for (const event of batch) if (isObject(event) && event['type'] === 'ADDED') items.push(event['object'])
    return parsed(watched, items)
  }
  const [coded, text] = await Promise.all([read(watched.message), read(undefined)])
  expect(text.size).toBeGreaterThan(0)
  expect(coded).toEqual(text)
})

test.each(CODED.map((watched) => [watched.kind, watched] as const))(
  '%s: nothing that its parser asks for is passed over',
  async (_, watched) => {
    const asked = new Set<string>()
    for (const item of await client.list(watched)) parsed(watched, [recorded(item, '', asked)])
    expect(asked.size).toBeGreaterThan(4)
    expect([...asked].filter((path) => !has(watched.message ?? [], path.split('.')))).toEqual([])
  },
)

/** Notes the paths of all fields that are looked at: "spec.ports.name". */
function recorded(value: unknown, path: string, asked: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  return new Proxy(value, {
    get: (target, key): unknown => {
      const isField = typeof key === 'string' && !Array.isArray(target)
      const at = isField ? (path === '' ? key : `${path}.${key}`) : path
      if (isField) asked.add(at)
      const part: unknown = Reflect.get(target, key)
      return typeof part === 'function' ? part : recorded(part, at, asked)
    },
  })
}

function has(message: Message, [name = '', ...rest]: readonly string[]): boolean {
  const field = message.find((one) => one?.name === name)
  if (field === undefined) return false
  if (field.form === 'texts-by-key' || rest.length === 0) return true
  return typeof field.form !== 'string' && has(field.form, rest)
}

test('a refusal is read as well, of a list and of a watch', async () => {
  const watched = CODED[0]
  if (watched === undefined) throw new Error('no kind')
  const { message } = watched
  const stop = new AbortController()
  const options = { resourceVersion: 'none', timeoutSeconds: 1, message, signal: stop.signal }
  await expect(client.watch(watched, options).next()).rejects.toThrow('watch of Service: resourceVersion: Invalid value: "none"')
  await using stranger = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig({ token: 'nobody' })) })
  await expect(stranger.pages(watched, { message }).next()).rejects.toThrow('GET /api/v1/services: Unauthorized')
})
