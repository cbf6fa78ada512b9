// SPDX-License-Identifier: Apache-2.0
/** deploy/ in a real API server: it takes every manifest as it is, and the agent can do its work with what they
 * let it do, and with nothing less. Layer: test. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, objectPath, namedOf, pluralOf, type ApiObject, type Collection } from '#lib/api/resource.ts'
import { ApiSource } from '#lib/api/source.ts'
import { WATCHED } from '#lib/api/watch/watch-list.ts'
import { errorText } from '#lib/base/errors.ts'
import { parseCidr } from '#lib/base/ip.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { blockName, IP_BLOCK } from '#lib/kube/objects/ip-block.ts'
import { NETWORK_UNAVAILABLE } from '#lib/kube/objects/conditions.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { STARTUP_TAINT } from '#lib/kube/objects/startup-taint.ts'
import type { Sink } from '#lib/store/source.ts'
import { ApiBlocks } from '#agent/ipam/api-blocks.ts'
import { parseOptions } from '#agent/run/options.ts'
import { untaint } from '#agent/status/startup-taint.ts'
import type { RbacRule } from '#lib/render/account.ts'
import { agentRules } from '#lib/render/agent-rights.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderInstallation, renderNamespace } from '#lib/render/render.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { isAppliedAlready } from '#operator/objects/applied-already.ts'
import { FIELD_MANAGER } from '#operator/objects/owned-fields.ts'
import { waitFor } from '../../lab/wait.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { NAME, NAMESPACE } from '../../testkit/kubernetes/manifest.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { issueToken, permissions, permissionsOf } from './rights.ts'
import { tellAll } from './status/writes.ts'

const BUILD_MS = 30 * 60_000
const ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: NAMESPACE, name: NAME } as const
const NODE = { apiVersion: 'v1', kind: 'Node' } as const
const ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: NAME } as const

let folder = ''
let cluster: LoopbackCluster
let admin: ApiClient

/** In the order in which kubectl takes them: the folder's own files by name, then the examples. */
function manifests(): readonly (readonly [file: string, object: ApiObject])[] {
  const deploy = fileURLToPath(new URL('../../deploy', import.meta.url))
  const files = ['manifests', 'examples']
    .map((part) => join(deploy, part))
    .flatMap((dir) =>
      readdirSync(dir)
        .filter((name) => name.endsWith('.yaml'))
        .sort()
        .map((name) => join(dir, name)),
    )
  return files.flatMap((file) =>
    loadAll(readFileSync(file, 'utf8')).map((object) => [file.slice(deploy.length + 1), asApiObject(object)] as const),
  )
}

/** As `kubectl apply --server-side --validate=strict`. */
async function apply(object: ApiObject): Promise<void> {
  await admin.request({
    method: 'PATCH',
    path: objectPath(namedOf(object)),
    query: { fieldManager: 'test', fieldValidation: 'Strict' },
    contentType: 'application/apply-patch+yaml',
    body: object,
  })
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-deploy-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  admin = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
}, BUILD_MS)

afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

test('every manifest is taken as it is', async () => {
  for (const [file, object] of manifests()) {
    const taken = async (): Promise<true | undefined> => {
      try {
        await apply(object)
        return true
      } catch (thrown) {
        // kinds of definitions that were made a moment ago
        if (file.startsWith('examples') && /the server could not find the requested resource/.test(errorText(thrown))) return undefined
        throw new Error(`${file} ${object.kind} ${object.metadata.name}`, { cause: thrown })
      }
    }
    expect(await waitFor(taken, { timeoutMs: 30_000, everyMs: 200 })).toBe(true)
  }
})

test('probes ask where health is served, whatever resources say', () => {
  const [, agents] = manifests().find(([, { kind, metadata }]) => kind === 'DaemonSet' && metadata.name === 'netplane-node') ?? []
  const text = JSON.stringify(agents)
  const probes = [...text.matchAll(/"httpGet":\{"host":"127\.0\.0\.1","path":"[^"]*","port":(\d+)\}/g)].map(([, port = '']) => port)
  expect(probes).toHaveLength(2)
  const pinned = [...text.matchAll(/"name":"FELIX_HEALTH(\w+)","value":"([^"]*)"/g)].map(([, name, value]) => [name, value])
  expect(Object.fromEntries(pinned)).toEqual({ ENABLED: 'true', HOST: '127.0.0.1', PORT: probes[0] })
  expect(probes[1]).toBe(probes[0])
})

test('a container that has folders of the node may write them under SELinux', () => {
  const daemonSets = manifests().filter(([, { kind }]) => kind === 'DaemonSet')
  const confined = daemonSets.flatMap(([file, object]) =>
    containersOf(object)
      .filter((container) => foldersOf(object, container).length > 0)
      .filter(({ securityContext }) => !/"privileged":true|"seLinuxOptions":\{"type":"spc_t"/.test(JSON.stringify(securityContext)))
      .map(({ name }) => `${file}: ${String(name)}`),
  )
  expect(daemonSets).toHaveLength(5)
  expect(confined).toEqual([])
})

test('docs/install-manifests.md has what the agent may do on its node, and which folders it has', () => {
  const page = readFileSync(fileURLToPath(new URL('../../docs/install-manifests.md', import.meta.url)), 'utf8').replaceAll(/\s+/g, ' ')
  const [, capabilities = '', folders = ''] =
    /The agent is root with the capabilities (.*?), a root file system that it cannot write, and these folders of the node: (.*?) to read\./s.exec(
      page,
    ) ?? []
  const [, daemonSet] = manifests().find(([file, { kind }]) => file === 'manifests/netplane.yaml' && kind === 'DaemonSet') ?? []
  if (daemonSet === undefined) throw new Error('there is no daemon set')
  const agent = containersOf(daemonSet).find(({ name }) => name === NAME) ?? {}
  expect([...folders.matchAll(/`([^`]+)`/g)].map(([, folder]) => folder).sort()).toEqual([...foldersOf(daemonSet, agent)].sort())
  expect(agent).toMatchObject({ securityContext: { capabilities: { add: capabilities.split(/, | and /) } } })
})

test.each([['chained'], ['local']])('the %s variant is the usual one with its flag', (variant) => {
  const [usual = '', other = ''] = ['netplane.yaml', `netplane-${variant}.yaml`].map((name) =>
    readFileSync(fileURLToPath(new URL(`../../deploy/manifests/${name}`, import.meta.url)), 'utf8'),
  )
  expect(other.replace(`            - --cni-${variant}\n`, '')).toBe(usual)
  const args = manifests()
    .filter(([file, { kind }]) => file === `manifests/netplane-${variant}.yaml` && kind === 'DaemonSet')
    .flatMap(([, object]) => containersOf(object))
    .flatMap(({ name, args: list }) =>
      name === NAME && Array.isArray(list) ? list.map((arg) => String(arg).replace(/\$\(\w+\)/, 'x')) : [],
    )
  expect(parseOptions(args)).toMatchObject({ kind: 'run', options: { cni: { [variant]: true } } })
})

type Fields = Readonly<Record<string, unknown>>

/** Of a daemon set. */
function containersOf(object: ApiObject): readonly Fields[] {
  const pod = podOf(object)
  return [...objects(pod['initContainers']), ...objects(pod['containers'])]
}

/** Those of the node that a container of the daemon set has; a pod may have some of its own. */
function foldersOf(object: ApiObject, container: Fields): readonly string[] {
  const ofNode = new Set(objects(podOf(object)['volumes']).flatMap(({ name, hostPath }) => (hostPath === undefined ? [] : [name])))
  return objects(container['volumeMounts']).flatMap(({ name, mountPath }) => (ofNode.has(name) ? [String(mountPath)] : []))
}

function podOf({ spec, metadata }: ApiObject): Fields {
  const template = isObject(spec) && isObject(spec['template']) ? spec['template']['spec'] : undefined
  if (!isObject(template)) throw new Error(`${metadata.name} has no pods`)
  return template
}

function objects(list: unknown): readonly Fields[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** A kubeconfig with a token of the daemon set's account, as made by hand; with a node: as its pod there has it. */
async function asAgent(node?: ApiObject): Promise<string> {
  return cluster.kubeconfig({ token: await issueToken(admin, ACCOUNT, node) })
}

/** Undefined: it has everything, and watches it; otherwise what it is refused. */
async function reads(kubeconfig: string): Promise<string | undefined> {
  const stop = new AbortController()
  const seen: { refused?: string; synced?: true } = {}
  const source = new ApiSource({ node: 'n1', server: fromKubeconfig(kubeconfig), absentMs: 100, backoff: { firstMs: 10, maxMs: 50 } })
  const sink: Sink = {
    apply: () => undefined,
    synced: () => {
      seen.synced = true
    },
    status: ({ unavailable }) => {
      if (unavailable !== undefined && /forbidden/i.test(unavailable.reason)) seen.refused = unavailable.reason
    },
  }
  const running = source.run(sink, stop.signal)
  const watchesAll = (): boolean => [...source.facts().values()].every(({ watches }) => watches > 0)
  const settled = (): true | undefined => (seen.refused !== undefined || (seen.synced === true && watchesAll()) ? true : undefined)
  await waitFor(() => Promise.resolve(settled()), { timeoutMs: HANG_MS, everyMs: 20 })
  // a watch that was begun may still be refused, and the source reports the second refusal
  if (seen.refused === undefined) await waitFor(() => Promise.resolve(seen.refused), { timeoutMs: 500, everyMs: 20 })
  stop.abort()
  await running
  return seen.refused ?? (seen.synced === true ? undefined : 'not synced in time')
}

/** What the agent of a node writes: blocks of addresses, what others have to know of it, and its status. */
async function writes(kubeconfig: string): Promise<string | undefined> {
  await using client = new ApiClient({ server: fromKubeconfig(kubeconfig) })
  const blocks = new ApiBlocks({ api: client, node: 'n', unreadable: () => undefined })
  const block = emptyBlock(parseCidr('10.0.0.0/26'), 'n')
  try {
    await blocks.own()
    const made = await blocks.create(block)
    const changed = made && (await blocks.replace(made, { ...block, freed: new Map([[1, 0]]) }))
    if (changed === undefined || !(await blocks.remove(changed))) return 'another one is at work'
    await tellAll(client, { admin, node: 'n' })
    await blocks.announce([block.cidr])
    return undefined
  } catch (thrown) {
    return errorText(thrown)
  } finally {
    for (const kind of [IP_BLOCK, NODE_NETWORK])
      for (const left of await admin.list(kind)) await admin.delete({ ...kind, name: left.metadata.name })
  }
}

const isRead = ({ verbs }: RbacRule): boolean => verbs.includes('watch')

/** Each way to take away one verb of one resource. */
function lessened(): readonly (readonly [text: string, read: boolean, rules: readonly RbacRule[]])[] {
  const rules = agentRules()
  return rules.flatMap((rule, at) =>
    rule.resources.flatMap((resource) =>
      rule.verbs.map((verb) => {
        const less = [
          { ...rule, resources: rule.resources.filter((one) => one !== resource) },
          { ...rule, resources: [resource], verbs: rule.verbs.filter((one) => one !== verb) },
        ].filter(({ resources, verbs }) => resources.length > 0 && verbs.length > 0)
        return [`${verb} ${resource}.${rule.apiGroups[0] ?? ''}`, isRead(rule), rules.toSpliced(at, 1, ...less)] as const
      }),
    ),
  )
}

describe('the account of the daemon set', () => {
  test('may do what the agent does', async () => {
    const n = await nodeCalled('n')
    await definePolicyKinds()
    await served([IP_BLOCK, ...WATCHED])
    const kubeconfig = await asAgent(n)
    expect(await reads(kubeconfig)).toBeUndefined()
    expect(await writes(kubeconfig)).toBeUndefined()
  })

  test('may change nothing of another node', async () => {
    const [n, other] = [await nodeCalled('n'), await nodeCalled('other')]
    expect(await writes(await asAgent(n))).toBeUndefined()
    await using agent = new ApiClient({ server: fromKubeconfig(await asAgent(other)) })
    const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'other-pod' } as const
    await admin.create(asApiObject({ ...pod, metadata: pod, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } }))
    const block = emptyBlock(parseCidr('10.0.0.0/26'), 'n')
    await admin.create(asApiObject({ ...NODE_NETWORK, metadata: { name: 'n' } }))
    const made = await new ApiBlocks({ api: admin, node: 'n', unreadable: () => undefined }).create(block)
    if (made === undefined) throw new Error('no block')
    const status = { type: 'merge', subresource: 'status' } as const
    const { name } = n.metadata
    for (const [text, write] of [
      ['taint', () => agent.patch({ ...NODE, name }, { spec: { taints: [] } }, { type: 'merge' })],
      ['conditions', () => agent.patch({ ...NODE, name }, { status: { conditions: [] } }, status)],
      ['network', () => agent.patch({ ...NODE_NETWORK, name }, { spec: { addresses: ['192.0.2.2'] } }, { type: 'merge' })],
      ['network that is not there', () => agent.create(asApiObject({ ...NODE_NETWORK, metadata: { name: 'third' } }))],
      ['network, away', () => agent.delete({ ...NODE_NETWORK, name })],
      ['pod', () => agent.patch(pod, { status: { conditions: [] } }, status)],
      [
        'block in its name',
        () => new ApiBlocks({ api: agent, node: name, unreadable: () => undefined }).create(emptyBlock(parseCidr('10.0.0.64/26'), name)),
      ],
      [
        'its block',
        () => new ApiBlocks({ api: agent, node: 'other', unreadable: () => undefined }).replace(made, { ...block, node: 'other' }),
      ],
    ] as const) {
      const refused = (): Promise<string | undefined> =>
        write().then(
          () => undefined,
          (thrown: unknown) => errorText(thrown),
        )
      // a policy takes a moment to be in force
      expect(`${text}: ${(await waitFor(refused, { timeoutMs: HANG_MS, everyMs: 100 })) ?? 'taken'}`).toContain('this is not of node other')
    }
    await new ApiBlocks({ api: agent, node: 'other', unreadable: () => undefined }).announce([])
    await admin.delete({ ...IP_BLOCK, name: blockName(block.cidr) })
    await admin.delete({ ...NODE_NETWORK, name })
  })

  test('may take the startup taint off its own Node, and change nothing else of a Node', async () => {
    const [n, other] = [await nodeCalled('n'), await nodeCalled('other')]
    const own = { ...NODE, name: 'n' }
    const [startup, team] = [
      { key: STARTUP_TAINT, effect: 'NoSchedule' },
      { key: 'team', effect: 'NoSchedule' },
    ]
    const network = { type: NETWORK_UNAVAILABLE, status: 'False' }
    const conditions = [{ type: 'Ready', status: 'False' }, network]
    await admin.patch(own, { metadata: { labels: { a: 'b' } }, spec: { taints: [team, startup] } }, { type: 'merge' })
    await admin.patch(own, { status: { conditions } }, { type: 'merge', subresource: 'status' })
    const as = async (node?: ApiObject): Promise<ApiClient> => new ApiClient({ server: fromKubeconfig(await asAgent(node)) })
    await using agent = await as(n)
    await using others = await as(other)
    await using unnamed = await as()
    const merge = (patch: object, by = agent): Promise<unknown> => by.patch(own, patch, { type: 'merge' })
    const status = (patch: object, by = agent): Promise<unknown> => by.patch(own, patch, { type: 'merge', subresource: 'status' })
    const taints = (...all: readonly object[]): object => ({ spec: { taints: all } })
    const [nothingElse, nothingOfStatus] = [/take the taint .* away/, /its condition NetworkUnavailable/]
    for (const [text, write, why] of [
      ['by another node', () => merge(taints(team), others), /not of node other/],
      ['by a token without a node', () => merge(taints(team), unnamed), /names no node/],
      ['another taint away', () => merge(taints(startup)), nothingElse],
      ['all taints away', () => merge(taints()), nothingElse],
      ['another taint there', () => merge(taints(team, startup, { key: 'x', effect: 'NoExecute' })), nothingElse],
      ['another effect', () => merge(taints(team, { ...startup, effect: 'NoExecute' })), nothingElse],
      ['a label', () => merge({ metadata: { labels: { a: 'c' } } }), nothingElse],
      ['no label', () => merge({ metadata: { labels: null } }), nothingElse],
      ['an annotation', () => merge({ metadata: { annotations: { a: 'c' } } }), nothingElse],
      ['a finalizer', () => merge({ metadata: { finalizers: ['a.example/b'] } }), nothingElse],
      ['cordoned', () => merge({ spec: { unschedulable: true } }), nothingElse],
      ['a range', () => merge({ spec: { podCIDR: '10.9.0.0/24', podCIDRs: ['10.9.0.0/24'] } }), nothingElse],
      ['a label by its status', () => status({ metadata: { labels: { a: 'c' } } }), nothingOfStatus],
      ['a label by its status, without a node', () => status({ metadata: { labels: { a: 'c' } } }, unnamed), nothingOfStatus],
      ['an address', () => status({ status: { addresses: [{ type: 'InternalIP', address: '192.0.2.9' }] } }), nothingOfStatus],
      ['ready', () => status({ status: { conditions: [{ type: 'Ready', status: 'True' }, network] } }), nothingOfStatus],
      ['not ready or unready', () => status({ status: { conditions: [network] } }), nothingOfStatus],
    ] as const) {
      const refused = (): Promise<string | undefined> =>
        write().then(
          () => undefined,
          (thrown: unknown) => errorText(thrown),
        )
      expect(`${text}: ${(await refused()) ?? 'taken'}`).toMatch(why)
    }
    const [, before] = [await status({ status: { conditions: [conditions[0], { ...network, status: 'True' }] } }), await admin.get(own)]
    const steps = untaint(before) ?? []
    // another writer has changed the list meanwhile
    await admin.patch(own, taints({ key: 'x', effect: 'NoExecute' }, team, startup), { type: 'merge' })
    await expect(agent.patch(own, steps, { type: 'json' })).rejects.toThrow()
    await admin.patch(own, taints(team, startup), { type: 'merge' })
    const after = await agent.patch(own, steps, { type: 'json' })
    expect(after).toMatchObject({ metadata: { labels: { a: 'b' } }, spec: { taints: [team] } })
    expect(after['spec']).toEqual({ ...fieldsOf(before['spec']), taints: [team] })
    await admin.patch(own, { metadata: { labels: null }, spec: { taints: null } }, { type: 'merge' })
  })

  test('may do nothing else', async () => {
    const kubeconfig = await asAgent(await nodeCalled('n'))
    for (const [text, read, rules] of lessened()) {
      await setRules(rules, kubeconfig)
      const refused = read ? await reads(kubeconfig) : await writes(kubeconfig)
      expect(`${text}: ${refused ?? 'not missed'}`).toMatch(/forbidden/i)
    }
    await setRules(agentRules(), kubeconfig)
    expect(await reads(kubeconfig)).toBeUndefined()
    const own = { ...ROLE, kind: 'Role', namespace: ACCOUNT.namespace }
    const { rules } = await admin.get(own)
    await admin.patch(own, { rules: [] }, { type: 'merge' })
    // taken away a moment later
    await expect.poll(() => writes(kubeconfig), { interval: 100 }).toMatch(/daemonsets.* forbidden/)
    await admin.patch(own, { rules }, { type: 'merge' })
  }, 600_000)
})

describe('by what Kubernetes adds to its roles', () => {
  /** An account of a namespace that is bound there to all roles of ours that Kubernetes' role takes in. */
  async function bound(role: string): Promise<ApiClient> {
    const { aggregationRule } = await admin.get({ ...ROLE, name: role })
    const wanted = objects(fieldsOf(aggregationRule)['clusterRoleSelectors']).map(({ matchLabels }) =>
      Object.entries(fieldsOf(matchLabels)),
    )
    const ours = (await admin.list({ apiVersion: ROLE.apiVersion, kind: ROLE.kind })).filter(
      ({ metadata: { name, labels = {} } }) =>
        name.startsWith('netplane-') && wanted.some((pairs) => pairs.every(([key, value]) => labels[key] === value)),
    )
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: 'default', name: `team-${role}` } as const
    const { apiVersion, kind, namespace, name } = account
    await admin.apply(asApiObject({ apiVersion, kind, metadata: { namespace, name } }))
    for (const { metadata } of ours)
      await admin.apply(
        asApiObject({
          ...{
            apiVersion: ROLE.apiVersion,
            kind: 'RoleBinding',
            metadata: { namespace: account.namespace, name: `${account.name}-${metadata.name}` },
          },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: ROLE.kind, name: metadata.name },
          subjects: [{ kind: account.kind, namespace: account.namespace, name: account.name }],
        }),
      )
    return new ApiClient({ server: fromKubeconfig(cluster.kubeconfig({ token: await issueToken(admin, account) })) })
  }

  const policy = (kind: string, namespace?: string): ApiObject =>
    asApiObject({
      apiVersion: 'netplane.io/v3',
      kind,
      metadata: { name: 'team', ...(namespace && { namespace }) },
      spec: { selector: 'all()' },
    })
  const answer = (write: Promise<unknown>): Promise<string> => write.then(() => 'taken', errorText)

  test.each(['admin', 'edit'])('%s of a namespace writes our policies there, and nowhere else', async (role) => {
    await using team = await bound(role)
    // roles take a moment to be in force
    await expect.poll(() => answer(team.create(policy('NetworkPolicy', 'default'))), { interval: 100, timeout: HANG_MS }).toBe('taken')
    await team.delete(namedOf(policy('NetworkPolicy', 'default')))
    expect(await answer(team.create(policy('NetworkPolicy', 'kube-system')))).toMatch(/forbidden/)
    expect(await answer(team.create(policy('GlobalNetworkPolicy')))).toMatch(/forbidden/)
  })

  test('view of a namespace reads them', async () => {
    await using team = await bound('view')
    const policies = { apiVersion: 'netplane.io/v3', kind: 'NetworkPolicy', namespace: 'default' }
    await expect.poll(() => answer(team.list(policies)), { interval: 100, timeout: HANG_MS }).toBe('taken')
    expect(await answer(team.create(policy('NetworkPolicy', 'default')))).toMatch(/forbidden/)
    expect(await answer(team.list({ ...policies, namespace: 'kube-system' }))).toMatch(/forbidden/)
  })
})

// the last one: it takes the account's roles over
test('what the operator has applied it does not apply again', async () => {
  const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: undefined })
  const rendered = renderInstallation({ namespace: 'other', image: 'x', computed, endpoint: { host: 'x', port: '1' } })
  for (const object of [renderNamespace('other'), ...rendered]) {
    const applied = await admin.apply(object, { fieldManager: FIELD_MANAGER, force: true })
    expect(isAppliedAlready(object, applied), `${object.kind} ${object.metadata.name}`).toBe(true)
  }
})

async function nodeCalled(name: string): Promise<ApiObject> {
  return await admin.apply(asApiObject({ ...NODE, metadata: { name } }))
}

/** Definitions take a moment to be followed. */
async function served(collections: readonly Collection[]): Promise<void> {
  for (const collection of collections) {
    const lists = (): Promise<true | undefined> =>
      admin.list(collection).then(
        () => true,
        () => undefined,
      )
    if ((await waitFor(lists, { timeoutMs: 30_000, everyMs: 100 })) === undefined)
      throw new Error(`${collection.kind} is not served in time`)
  }
}

/** Definitions of others' kinds that the agent reads where they are. */
async function definePolicyKinds(): Promise<void> {
  for (const { apiVersion, kind } of WATCHED.filter(({ apiVersion: version }) => version.startsWith('policy.networking.k8s.io/'))) {
    const [group = '', version = ''] = apiVersion.split('/')
    const plural = pluralOf(kind)
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    await apply(
      asApiObject({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: {
          name: `${plural}.${group}`,
          annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements' },
        },
        spec: { group, names: { kind, plural }, scope: 'Cluster', versions: [{ name: version, served: true, storage: true, schema }] },
      }),
    )
  }
}

/** Resolves when the server goes by them. */
async function setRules(rules: readonly RbacRule[], kubeconfig: string): Promise<void> {
  await admin.patch(ROLE, { rules }, { type: 'merge' })
  await using agent = new ApiClient({ server: fromKubeconfig(kubeconfig) })
  const wanted = permissions(rules)
  const holds = async (): Promise<true | undefined> => ((await permissionsOf(agent, 'default')).join() === wanted.join() ? true : undefined)
  if ((await waitFor(holds, { timeoutMs: HANG_MS, everyMs: 20 })) === undefined) throw new Error('the role does not change')
}
