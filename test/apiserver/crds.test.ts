// SPDX-License-Identifier: Apache-2.0
/** Definitions of deploy/ in a real API server: it takes them, and what their schemas accept the parsers accept.
 * Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { ApiError } from '#lib/api/errors.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, collectionPath, namedOf } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { rejectedText } from '#lib/base/result.ts'
import { FieldError, inside } from '#lib/kube/parse/fields.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { OPERATOR_RESOURCES } from '#lib/kube/operator-resources.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { resources, type Resource } from '#lib/kube/resources.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { isDefinition, manifest } from '../../testkit/kubernetes/manifest.ts'
import { waitFor } from '../../lab/wait.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { ADDRESSES, NO_ADDRESSES, NO_PREFIXES, OLD_ADDRESSES, OLD_PREFIXES, PREFIXES } from '../support/address-texts.ts'
import { spoilt, valueOf } from '../support/from-schema.ts'
import { addressEdges, edgesOf, type Beside } from '../support/schema-edges.ts'
import { ofMatrix } from '../support/steady/matrix.ts'

const BUILD_MS = 30 * 60_000
const ALL = resources(felixSchema())
const OPERATOR_CRDS = 'deploy/operator/operator-crds.yaml'
/** Samples of each kind. */
const [ACCEPTED = 0] = ofMatrix([100], [10])

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-crds-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  const own = manifest().filter(isDefinition)
  const names = new Set(own.map(({ metadata }) => metadata.name))
  // the operator's file has both
  const others = loadAll(readFileSync(OPERATOR_CRDS, 'utf8')).map(asApiObject)
  for (const definition of [...own, ...others.filter(({ metadata }) => !names.has(metadata.name))])
    await client.request(create(definition, {}))
  for (const resource of [...ALL, ...OPERATOR_RESOURCES]) await served(resource)
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

function create(object: unknown, query: { readonly dryRun?: 'All' }) {
  const path = collectionPath(namedOf(asApiObject(object)))
  return { method: 'POST', path, query: { fieldValidation: 'Strict', ...query }, body: object } as const
}

async function served({ group, version, kind }: Resource): Promise<void> {
  const lists = async (): Promise<true | undefined> => {
    try {
      await client.list({ apiVersion: `${group}/${version}`, kind })
      return true
    } catch {
      return undefined
    }
  }
  if ((await waitFor(lists, { timeoutMs: 30_000, everyMs: 100 })) === undefined) throw new Error(`${kind} is not served in time`)
}

function objectOf({ group, version, kind, namespaced }: Resource, spec: unknown): Readonly<Record<string, unknown>> {
  const metadata = namespaced ? { namespace: 'default', name: 'default' } : { name: kind === 'Tier' ? 'own' : 'default' }
  return { apiVersion: `${group}/${version}`, kind, metadata, spec }
}

/** Undefined when it is accepted. */
async function refusal(object: unknown): Promise<string | undefined> {
  try {
    await client.request(create(object, { dryRun: 'All' }))
    return undefined
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status < 500) return errorText(thrown)
    throw thrown
  }
}

/** What the agent, the controllers or the operator would say of it. */
function complaints(object: Readonly<Record<string, unknown>>): readonly string[] {
  if (object['kind'] === IP_BLOCK.kind) return errorsOf(() => parseIPBlock(object))
  if (object['kind'] === 'ControllersConfiguration') return errorsOf(() => inside(object, 'spec', controllersConfigurationSpec.read))
  if (object['kind'] === 'Installation') return errorsOf(() => inside(object, 'spec', installationSpec.read))
  const identified = identify(object)
  if (identified.kind !== 'ours') return [`is ${identified.kind}`]
  const parsed = parseObject(object, identified.ref)
  const felix =
    parsed.kind === 'ok' && parsed.value.kind === 'FelixConfiguration' ? resolveConfig([layerFrom(parsed.value)], undefined).rejected : []
  return [...parsed.rejected, ...felix].map(rejectedText)
}

function errorsOf(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (thrown) {
    if (thrown instanceof FieldError) return [errorText(thrown)]
    throw thrown
  }
}

/** What no schema can say, and what is only reported. */
const AGENTS_ALONE = [
  /is not in [^ ]+$/,
  /not a selector/,
  /must be the key of a label/,
  /a range like 8000:9000/,
  /regular expression/,
  /Log is not supported in eBPF mode: the rule is left out/,
  /ipipMode: is not supported/,
]

const isForAgents = (complaint: string): boolean => AGENTS_ALONE.some((pattern) => pattern.test(complaint))

/** What fields need beside them. */
const BESIDE: readonly Beside[] = [
  { of: /\.(source|destination)\.(ports|notPorts)/, at: /gress\[\]$/, are: { protocol: 'TCP' } },
  { of: /\.(icmp|notICMP)/, at: /gress\[\]$/, are: { protocol: 'ICMP' } },
  { of: /\.code$/, at: /\.(icmp|notICMP)$/, are: { type: 8 } },
  { of: /\.matchExpressions\[\]/, at: /\.matchExpressions\[\]$/, are: { key: 'a', operator: 'In', values: ['b'] } },
  { of: /\.ipBlock\.except/, at: /\.ipBlock$/, are: { cidr: '0.0.0.0/0' } },
  { of: /\.endPort$/, at: /\.ports\[\]$/, are: { port: 1 } },
]
const BESIDE_IN: Readonly<Record<string, readonly Beside[]>> = {
  HostEndpoint: [{ of: /^/, at: /^$/, are: { interfaceName: 'eth0' } }],
  IPAMBlock: [
    { of: /^(allocations|released)/, at: /^$/, are: { cidr: '10.0.0.0/26' } },
    { of: /^(allocations|released)/, at: /\[\]$/, are: { address: '10.0.0.1' } },
  ],
}

/** Peers that say nothing, and addresses, of which hardly one is in the block. */
const NEVER_ALONE = [/^(ingress\[\]\.from|egress\[\]\.to)\[\]$/, /^(allocations|released)\[\]\.address$/]

/** What the server once accepted and the agent refused: asked in every run. */
const FOUND: Readonly<Record<string, readonly unknown[]>> = { NodeNetwork: [{ addresses: ['::', '198.251.0.137'] }] }

describe.each(ALL.map((resource) => [resource.kind, resource] as const))('%s', (_, resource) => {
  test('what the server accepts the agent accepts', async () => {
    const specs = fc.oneof({ weight: 3, arbitrary: valueOf(resource.spec) }, { weight: 1, arbitrary: spoilt(valueOf(resource.spec)) })
    const check = async (spec: unknown): Promise<void> => {
      const object = objectOf(resource, spec)
      // another one in its place; a generator that is worth nothing runs out of them
      fc.pre((await refusal(object)) === undefined)
      expect(complaints(object).filter((text) => !isForAgents(text))).toEqual([])
    }
    const examples = (FOUND[resource.kind] ?? []).map((spec): [unknown] => [spec])
    await fc.assert(fc.asyncProperty(specs, check), { numRuns: ACCEPTED, maxSkipsPerRun: 10, endOnFailure: true, examples })
  })

  test('each of its fields alone is taken, and what the agent refuses of it the server refuses: bounds, words, forms', async () => {
    const edges = edgesOf(resource.spec, [...BESIDE, ...(BESIDE_IN[resource.kind] ?? [])])
    const untaken = new Set(edges.map(({ path }) => path))
    const wrong: string[] = []
    for (const { path, value } of edges) {
      const object = objectOf(resource, value)
      const said = complaints(object)
      if (said.length === 0) untaken.delete(path)
      const [first] = said.filter((text) => !isForAgents(text))
      if (first !== undefined && (await refusal(object)) === undefined) wrong.push(`${JSON.stringify(value).slice(0, 200)}: ${first}`)
    }
    expect(wrong).toEqual([])
    expect([...untaken].filter((path) => !NEVER_ALONE.some((pattern) => pattern.test(path)))).toEqual([])
  })
})

const TEXTS = [...ADDRESSES, ...NO_ADDRESSES, ...PREFIXES, ...NO_PREFIXES]
const WITH_ADDRESSES = [...ALL, ...OPERATOR_RESOURCES].flatMap((resource) => {
  const edges = addressEdgesOf(resource, TEXTS)
  return edges.length === 0 ? [] : [{ kind: resource.kind, resource, edges }]
})

function addressEdgesOf({ kind, spec }: Resource, texts: readonly string[]) {
  return addressEdges(spec, texts, [...BESIDE, ...(BESIDE_IN[kind] ?? [])])
}

test('kinds with addresses and prefixes are found by their schemas', () => {
  expect(WITH_ADDRESSES.map(({ kind, edges }) => `${kind} ${edges.length / TEXTS.length}`)).toEqual([
    ...['NetworkPolicy 8', 'GlobalNetworkPolicy 8', 'StagedNetworkPolicy 8', 'StagedGlobalNetworkPolicy 8'],
    ...['StagedKubernetesNetworkPolicy 4', 'NetworkSet 1', 'GlobalNetworkSet 1', 'Profile 8', 'HostEndpoint 1', 'IPPool 1'],
    ...['IPAMBlock 3', 'NodeNetwork 5', 'FelixConfiguration 5', 'ControllersConfiguration 1', 'Installation 1'],
  ])
})

test.each(WITH_ADDRESSES)(
  '$kind: of each special address the server says in each field what the agent says',
  async ({ resource, edges }) => {
    const wrong: string[] = []
    for (const { path, value } of edges) {
      const object = objectOf(resource, value)
      const [agent] = complaints(object).filter((text) => !isForAgents(text))
      const server = await refusal(object)
      if ((agent === undefined) !== (server === undefined))
        wrong.push(`${path}: ${JSON.stringify(value)}: ${server ?? 'the server accepts it'}; ${agent ?? 'the agent accepts it'}`)
    }
    expect(wrong).toEqual([])
  },
)

// agents read them where they were stored before there was a schema
test.each(WITH_ADDRESSES)('$kind: no field takes an address or a prefix in an old form', async ({ resource }) => {
  const taken: string[] = []
  for (const { path, value } of addressEdgesOf(resource, [...OLD_ADDRESSES, ...OLD_PREFIXES]))
    if ((await refusal(objectOf(resource, value))) === undefined) taken.push(`${path}: ${JSON.stringify(value)}`)
  expect(taken).toEqual([])
})

const RULE = { action: 'Allow' }
const REFUSED: readonly (readonly [kind: string, spec: object, says: readonly string[]])[] = [
  [
    'NetworkPolicy',
    { ingress: [{ ...RULE, destination: { ports: [80] } }] },
    ['spec.ingress[0].destination.ports', 'needs protocol TCP, UDP or SCTP'],
  ],
  ['NetworkPolicy', { ingress: [{ ...RULE, http: {} }] }, ['spec.ingress[0].http', 'application layer policy is not supported']],
  [
    'NetworkPolicy',
    { egress: [{ ...RULE, source: { services: { name: 'a' } } }] },
    ['spec.egress[0].source.services', 'must not be the source of an egress rule'],
  ],
  [
    'NetworkPolicy',
    { ingress: [{ ...RULE, source: { services: { name: 'a' }, nets: ['10.0.0.0/8'] } }] },
    ['spec.ingress[0].source.nets', 'must not stand beside services'],
  ],
  ['NetworkPolicy', { ingress: [{ ...RULE, source: { nets: ['10.0.0.0/8', 'fd00::/8'] } }] }, ['spec.ingress[0]']],
  ['NetworkPolicy', { selectr: 'all()' }, ['unknown field "spec.selectr"']],
  ['GlobalNetworkPolicy', { preDNAT: true, doNotTrack: true }, ['spec.preDNAT', 'must not be said with doNotTrack']],
  ['GlobalNetworkPolicy', { preDNAT: true, applyOnForward: false }, ['spec.applyOnForward', 'must be true with preDNAT']],
  ['Tier', { defaultAction: 'Allow' }, ['spec.defaultAction', 'supported values: "Deny", "Pass"']],
  ['HostEndpoint', { node: 'a' }, ['spec.interfaceName', 'is missing, and so are expectedIPs']],
  ['NodeNetwork', { addresses: ['198.251.0.137', '0:0::0'] }, ['spec.addresses']],
  ['NodeNetwork', { addresses: ['0.0.0.0'] }, ['spec.addresses']],
  ['IPPool', { cidr: '10.0.0.0/16', blockSize: 8 }, ['spec.blockSize']],
  ['IPPool', { cidr: '10.0.0.0' }, ['spec.cidr']],
  ['FelixConfiguration', { iptablesBackend: 'NFT' }, ['spec.iptablesBackend', 'there is no other data plane than eBPF']],
  ['FelixConfiguration', { wireguardEnabled: true }, ['spec.wireguardEnabled', 'WireGuard is not implemented']],
  [
    'FelixConfiguration',
    { bpfConntrackTimeouts: { genericTimeout: '5s' } },
    ['spec.bpfConntrackTimeouts.genericTimeout', 'only TCP, UDP and ICMP'],
  ],
  ['FelixConfiguration', { bpfPSNATPorts: '30000:20000' }, ['spec.bpfPSNATPorts', 'must be two ports, like 20000:29999']],
]

test.each(REFUSED)('%s %j is refused with field and reason', async (kind, spec, says) => {
  const resource = ALL.find((one) => one.kind === kind)
  if (resource === undefined) throw new Error(kind)
  const refused = await refusal(objectOf(resource, spec))
  for (const text of [kind === 'NetworkPolicy' && says[0]?.startsWith('unknown') === true ? '' : resource.plural, ...says])
    expect(refused?.toLowerCase()).toContain(text.toLowerCase())
})

test.each([
  ['FelixConfiguration', 'other', 'metadata.name must be default or node.<name>'],
  ['Tier', 'a.b', 'metadata.name must have no'],
  ['ControllersConfiguration', 'other', 'metadata.name must be default'],
])('%s of the name %s is refused', async (kind, name, says) => {
  expect(await refusal({ apiVersion: 'netplane.io/v3', kind, metadata: { name }, spec: {} })).toContain(says)
})

test('built-in tiers are as they are', async () => {
  const tier = (spec: object) => ({ apiVersion: 'netplane.io/v3', kind: 'Tier', metadata: { name: 'default' }, spec })
  expect(await refusal(tier({ order: 5 }))).toContain('spec.order of tier default must be 1000000')
  expect(await refusal(tier({ order: 1_000_000, defaultAction: 'Deny' }))).toBeUndefined()
})

test('the range of a pool stays', async () => {
  const pool = (spec: object) => asApiObject({ apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'pods' }, spec })
  await client.apply(pool({ cidr: '10.0.0.0/16' }))
  await client.apply(pool({ cidr: '10.0.0.0/16', natOutgoing: true }))
  await expect(client.apply(pool({ cidr: '10.1.0.0/16' }))).rejects.toThrow(/spec.cidr.*cannot be changed/)
  await expect(client.apply(pool({ cidr: '10.0.0.0/16', blockSize: 26 }))).rejects.toThrow(/spec.blockSize.*cannot be changed/)
})
