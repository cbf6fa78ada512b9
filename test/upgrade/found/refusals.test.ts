// SPDX-License-Identifier: Apache-2.0
/** What keeps an upgrade from being begun, and what is told besides. Layer: test. */
import { describe, expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { findInstallation } from '#upgrade/found/find.ts'
import { REFUSALS, WARNINGS } from '#upgrade/found/refusals.ts'
import { traitsOf } from '#upgrade/found/traits.ts'
import { refusalText } from '#upgrade/refusal.ts'
import { agentPod, definition, facts, information, installed, object, withObjects, type Form } from './installed.ts'

const SET = 'kube-system/netplane-node'

/** Those of the checks that find something. */
function checksOf(objects: readonly ApiObject[], serverVersion?: string): readonly string[] {
  const traits = traitsOf(facts(objects, serverVersion))
  return [...REFUSALS, ...WARNINGS].filter(({ find }) => find(traits).length > 0).map(({ when }) => when)
}

/** An installation with these objects beside, or in place of its own. */
function having(form: Form, ...others: readonly ApiObject[]): readonly ApiObject[] {
  return withObjects(installed('3.27', form), ...others)
}

function without(form: Form, ...kinds: readonly string[]): readonly ApiObject[] {
  return installed('3.27', form).filter(({ kind, apiVersion }) => !kinds.includes(kind) && !kinds.includes(apiVersion))
}

/** "DaemonSet canal" */
function find(objects: readonly ApiObject[], what: string): ApiObject {
  const found = objects.find(({ kind, metadata }) => what === `${kind} ${metadata.name}`)
  if (found === undefined) throw new Error(`${what} is not there`)
  return found
}

/** An object of an installation with other metadata. */
function marked(form: Form, what: string, metadata: object): ApiObject {
  const found = find(installed('3.27', form), what)
  return { ...found, metadata: { ...found.metadata, ...metadata } }
}

/** An agent whose container has these fields. */
function agentWith(name: string, fields: object): ApiObject {
  return object('apps/v1 DaemonSet', name, { spec: { template: { spec: { containers: [{ name: 'netplane-node', ...fields }] } } } })
}

/** Agents of this version, and a DaemonSet of it. */
function imaged(tag: string): readonly ApiObject[] {
  return having('netplane', agentWith(SET, { image: `netplane/node:${tag}` }), ...podsOf(tag))
}

function podsOf(tag: string): readonly ApiObject[] {
  return ['a', 'b'].map((node) => agentPod(`${SET}-${node}`, { node, daemonSet: 'netplane-node', tag }))
}

const node = (name: string, labels: object): ApiObject => object('v1 Node', name, { metadata: { labels } })
const machine = (name: string, nodeInfo: object): ApiObject => object('v1 Node', name, { status: { nodeInfo } })
const stored = (datastoreReady: boolean): ApiObject => information('crd.netplane.io/v1', { netplaneVersion: 'v3.27.0', datastoreReady })
const own = (datastoreReady: boolean): ApiObject => information('netplane.io/v3', { netplaneVersion: 'v3.27.0', datastoreReady })
const operator = object('apps/v1 Deployment', 'netplane-operator/netplane-operator')
const crd = (of: object): ApiObject =>
  definition('ippools.crd.netplane.io', { group: 'crd.netplane.io', version: 'v1', kind: 'IPPool', ...of })
const aggregated = object('apiregistration.k8s.io/v1 APIService', 'v3.netplane.io', {
  spec: { group: 'netplane.io', version: 'v3', service: { namespace: 'netplane-apiserver', name: 'api' } },
})
const migration = (phase: string): ApiObject =>
  object('migration.netplane.io/v1beta1 DatastoreMigration', 'v1-to-v3', { status: { phase } })
const release = (status: string): ApiObject =>
  object('v1 Secret', 'netplane-operator/sh.helm.release.v1.netplane.v10', { metadata: { labels: { owner: 'helm', status } } })
const sideCar = object('v1 Pod', 'shop/web', { spec: { containers: [{ name: 'web' }, { name: 'dikastes' }] } })
const injector = (config: string): ApiObject => object('v1 ConfigMap', 'istio-system/istio-sidecar-injector', { data: { config } })

type Case = readonly [title: string, objects: readonly ApiObject[], checks: readonly string[]]

const BGP = "nodes know the ways to each other's pods by BGP alone"
const OTHER = 'the version is older than v3.15, or an unknown newer one'
const MANAGED = 'another program looks after it'
const VERSIONS = 'a definition has objects stored in several versions'
const BOTH = 'both the stored resources and those of this version are written'
const TWO = 'there are two installations'
const PLACE = 'agents are in a DaemonSet of an unknown name or namespace'
const GONE = 'a part of it is being deleted'
const TAKEN = 'an operator is taking nodes over from manifests'
const BPF_SIDE_CARS = 'pods have side-cars of application layer policy, in BPF mode'
const SIDE_CARS = 'pods have side-cars of application layer policy, in Standard mode'
const ELSEWHERE = 'a setting of the agents is not said in words'
/** By the step `chart`, until it is done. */
const KEPT = { annotations: { 'upgrade.netplane.io/chart-values': '{}' } }
const deleted = { deletionTimestamp: '2026-11-27T08:00:00Z' }

const nodes = [node('a', {}), node('b', {})]
const pool = (spec: object): ApiObject => object('crd.netplane.io/v1 IPPool', 'pods', { spec: { cidr: '10.244.0.0/16', ...spec } })
const felix = (spec: object): ApiObject => object('crd.netplane.io/v1 FelixConfiguration', 'default', { spec })
const words = (values: Readonly<Record<string, string>>): ApiObject =>
  agentWith(SET, {
    image: 'netplane/node:v3.27.0',
    env: Object.entries({ DATASTORE_TYPE: 'kubernetes', ...values }).map(([name, value]) => ({ name, value })),
  })

const CASES: Readonly<Record<string, readonly Case[]>> = {
  ways: [
    ['a pool without an overlay, and BGP', having('netplane', pool({ vxlanMode: 'Never' }), ...nodes), [BGP]],
    ['a pool that says no overlay, and no backend', having('netplane', words({}), pool({}), ...nodes), [BGP]],
    ['the same under an operator', having('operator', pool({}), ...nodes), [BGP]],
    ['of two such pools one that is disabled', having('netplane', pool({ disabled: true }), ...nodes), []],
    ['a pool without an overlay on the only node', [...without('netplane', 'Node'), pool({}), node('a', {})], []],
    ['a pool with VXLAN beyond routers, and BGP', having('netplane', pool({ vxlanMode: 'CrossSubnet' }), ...nodes), []],
    ['a pool without an overlay, and the backend vxlan', having('vxlan', pool({}), ...nodes), []],
    ['a pool without an overlay beside flannel', having('canal', pool({}), ...nodes), []],
    ['policy alone in BPF mode', having('policy-only', felix({ bpfEnabled: true })), ['agents for policy alone are in BPF mode']],
    ['policy alone in Standard mode', having('policy-only', felix({ bpfEnabled: false })), []],
    [
      'flannel whose settings are gone',
      without('canal', 'ConfigMap'),
      ["flannel is beside the agent, and the agent's ConfigMap is not there"],
    ],
  ],
  installation: [
    ['an empty cluster', [], ['no agents are installed']],
    ['an operator without an Installation', [operator], ['no agents are installed']],
    ['a DaemonSet of another product', [object('apps/v1 DaemonSet', 'kube-system/canal')], ['no agents are installed']],
    ['canal beside netplane-node', having('netplane', find(installed('3.27', 'canal'), 'DaemonSet canal')), [TWO]],
    ['an operator beside a DaemonSet of a manifest', having('netplane', operator), [TWO]],
    ["the agents of an operator beside a manifest's", [...installed('3.27', 'operator'), ...installed('3.27', 'canal')], [TWO]],
    ['an operator beside its own agents', installed('3.27', 'operator'), []],
    [
      'agents in a DaemonSet of another name',
      [...without('netplane', 'DaemonSet', 'Pod'), agentWith('kube-system/rke2-canal', { image: 'netplane/node:v3.27.0' })],
      [PLACE],
    ],
    [
      'agents in another namespace',
      [...without('netplane', 'DaemonSet', 'Pod'), agentWith('net/netplane-node', { image: 'netplane/node:v3.27.0' })],
      [PLACE],
    ],
    [
      'agents whose operator is gone',
      installed('3.27', 'operator').filter(({ metadata }) => metadata.name !== 'netplane-operator'),
      ['agents are of an operator that is not there'],
    ],
    [
      'agents of an image without a version',
      [...without('netplane', 'DaemonSet', 'Pod', 'ClusterInformation'), agentWith(SET, { image: 'netplane/node:latest' }), own(true)],
      ['the version cannot be told', 'the stored resources of an older version are not there'],
    ],
    ['v3.14', imaged('v3.14.2'), [OTHER]],
    ['v2.6', imaged('v2.6.12'), [OTHER]],
    ['v3.15, the first', imaged('v3.15.0'), []],
    [
      'agents before a rollout that is about to begin',
      having('netplane', ...podsOf('v3.26.4')),
      ['agents run another version than their DaemonSet says'],
    ],
    ['v3.31, the last', imaged('v3.31.9'), []],
    ['v3.32', imaged('v3.32.0'), [OTHER]],
    ['resources in etcd', installed('3.27', 'etcd'), ['resources are in etcd']],
    ['resources in etcd beside flannel', installed('3.27', 'canal-etcd'), ['resources are in etcd']],
    [
      'variables of etcd that another type of datastore puts out of use',
      having(
        'netplane',
        agentWith(SET, {
          image: 'netplane/node:v3.27.0',
          env: [
            { name: 'DATASTORE_TYPE', value: 'kubernetes' },
            { name: 'ETCD_ENDPOINTS', value: 'https://192.0.2.1:2379' },
          ],
        }),
      ),
      [],
    ],
    [
      'an endpoint of etcd',
      having('netplane', agentWith(SET, { env: [{ name: 'NETPLANE_ETCD_ENDPOINTS', value: 'https://192.0.2.1:2379' }] })),
      ['resources are in etcd'],
    ],
    [
      'a datastore type of etcd by its other name',
      having('netplane', agentWith(SET, { env: [{ name: 'FELIX_DATASTORETYPE', value: 'etcdv3' }] })),
      ['resources are in etcd'],
    ],
    ['a DaemonSet that goes', having('netplane', marked('netplane', 'DaemonSet netplane-node', deleted)), [GONE]],
    ['an Installation that goes', having('operator', marked('operator', 'Installation default', deleted)), [GONE]],
    ['a namespace that goes', having('operator', object('v1 Namespace', 'netplane-system', { metadata: deleted })), [GONE]],
    ['another namespace that goes', having('operator', object('v1 Namespace', 'shop', { metadata: deleted })), []],
    [
      'a release of the namespace default, as charts before 3.23 kept it',
      having(
        'operator',
        object('v1 Secret', 'default/sh.helm.release.v1.netplane.v1', {
          metadata: { labels: { owner: 'helm', name: 'netplane', status: 'deployed' } },
        }),
      ),
      ["the chart's release is of another namespace than its operator"],
    ],
    ['a release that is being upgraded', having('chart', release('pending-upgrade')), ["a change of the chart's release has not ended"]],
    ['one that a run has left so', having('chart', release('pending-upgrade'), marked('chart', 'Namespace netplane-operator', KEPT)), []],
    ['a release that has failed', having('chart', release('failed')), []],
    [
      'a node that an operator takes over',
      having('netplane', node('a', { 'netplane.io/operator-node-migration': 'pre-operator' })),
      [TAKEN],
    ],
    [
      'a DaemonSet that an operator has left to nodes before it',
      having(
        'netplane',
        object('apps/v1 DaemonSet', SET, {
          spec: {
            template: {
              spec: {
                containers: [{ name: 'netplane-node', image: 'netplane/node:v3.27.0' }],
                nodeSelector: { 'netplane.io/operator-node-migration': 'pre-operator' },
              },
            },
          },
        }),
      ),
      [TAKEN],
    ],
    ['a node of Windows', having('netplane', node('w', { 'kubernetes.io/os': 'windows' })), ['nodes run Windows']],
    [
      'a node with the kernel of Enterprise Linux 7',
      having('netplane', machine('old', { kernelVersion: '3.10.0-1160.el7.x86_64' }), machine('b', { kernelVersion: '5.14.0-1' })),
      ['nodes have a kernel that is too old'],
    ],
    [
      'a node of s390x',
      having('netplane', machine('z', { architecture: 's390x' }), machine('b', { architecture: 'arm64' })),
      ['nodes are of another architecture'],
    ],
    [
      'an agent that is not ready',
      having('netplane', agentPod(`${SET}-b`, { node: 'b', daemonSet: 'netplane-node', tag: 'v3.27.0', ready: false })),
      ['agents are not ready on some nodes'],
    ],
    [
      'a setting in a Secret',
      having(
        'netplane',
        agentWith(SET, { env: [{ name: 'Felix_LogSeverityScreen', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }),
      ),
      [ELSEWHERE],
    ],
    [
      'settings that a whole config map has',
      having(
        'netplane',
        agentWith(SET, {
          envFrom: [{ prefix: 'FELIX_', configMapRef: { name: 'felix' } }, { configMapRef: { name: 'none', optional: true } }],
        }),
        object('v1 ConfigMap', 'kube-system/felix', { data: { LOGSEVERITYSCREEN: 'Debug' } }),
      ),
      [ELSEWHERE],
    ],
    [
      'a setting that has a value of its own after all',
      having(
        'netplane',
        agentWith(SET, {
          envFrom: [{ configMapRef: { name: 'felix' } }],
          env: [{ name: 'FELIX_LOGSEVERITYSCREEN', value: 'Info' }],
        }),
        object('v1 ConfigMap', 'kube-system/felix', { data: { FELIX_LOGSEVERITYSCREEN: 'Debug' } }),
      ),
      [],
    ],
  ],
  storage: [
    ['objects stored in two versions', having('netplane', crd({ storedVersions: ['v1beta1', 'v1'] })), [VERSIONS]],
    ['objects stored in another version', having('netplane', crd({ storedVersions: ['v1beta1'] })), [VERSIONS]],
    ['objects stored in one version', having('netplane', crd({ storedVersions: ['v1'] })), []],
    [
      'objects of this version stored in an older one as well',
      having(
        'netplane',
        definition('tiers.netplane.io', { group: 'netplane.io', version: 'v3', kind: 'Tier', storedVersions: ['v3', 'v4'] }),
      ),
      [VERSIONS],
    ],
    [
      'definitions of another product stored in two versions',
      having('netplane', definition('x.example.com', { group: 'example.com', version: 'v1', kind: 'X', storedVersions: ['v1', 'v2'] })),
      [],
    ],
    ['a definition that goes', having('netplane', crd({ metadata: deleted })), ['a definition is being deleted']],
    ['no stored resources', without('netplane', 'crd.netplane.io/v1'), ['the stored resources of an older version are not there']],
    ['a migration of the datastore under way', having('netplane', migration('Migrating')), ['a DatastoreMigration is there']],
    ['a migration of the datastore that is complete', having('netplane', migration('Complete')), ['a DatastoreMigration is there']],
    ['resources of both versions that may be written', having('netplane', stored(true), own(true)), [BOTH]],
    ['stored resources, while those of this version are being written', having('netplane', stored(true), own(false)), []],
    ['stored resources that are locked, beside those of this version', having('netplane', stored(false), own(true)), []],
    ['stored resources that an API server of theirs shows once more', having('netplane', stored(true), own(true), aggregated), []],
    ['stored resources that are locked', having('netplane', stored(false)), ['the datastore is locked']],
  ],
  managers: [
    [
      'a DaemonSet of the addon manager',
      having('netplane', marked('netplane', 'DaemonSet netplane-node', { labels: { 'addonmanager.kubernetes.io/mode': 'EnsureExists' } })),
      [MANAGED],
    ],
    [
      'a DaemonSet of Argo CD',
      having('netplane', marked('netplane', 'DaemonSet netplane-node', { annotations: { 'argocd.argoproj.io/tracking-id': 'net:x' } })),
      [MANAGED],
    ],
    [
      'a config map of Flux',
      having('netplane', marked('netplane', 'ConfigMap netplane-config', { labels: { 'kustomize.toolkit.fluxcd.io/name': 'net' } })),
      [MANAGED],
    ],
    [
      'a DaemonSet of a release of another chart',
      having('netplane', marked('netplane', 'DaemonSet netplane-node', { annotations: { 'meta.helm.sh/release-name': 'rke2-canal' } })),
      [MANAGED],
    ],
    [
      'a DaemonSet that was applied by kubectl',
      having('netplane', marked('netplane', 'DaemonSet netplane-node', { labels: { 'app.kubernetes.io/managed-by': 'kubectl' } })),
      [],
    ],
    [
      'a DaemonSet of a provisioning tool',
      having('netplane', marked('netplane', 'DaemonSet netplane-node', { labels: { 'app.kubernetes.io/managed-by': 'kops' } })),
      [MANAGED],
    ],
    [
      'a DaemonSet that another object controls',
      having(
        'netplane',
        marked('netplane', 'DaemonSet netplane-node', {
          ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Addon', name: 'net', controller: true }],
        }),
      ),
      [MANAGED],
    ],
    [
      'a DaemonSet that another object only owns',
      having(
        'netplane',
        marked('netplane', 'DaemonSet netplane-node', { ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Team', name: 'net' }] }),
      ),
      [],
    ],
    [
      'an operator whose release Flux looks after',
      having(
        'chart',
        marked('chart', 'Deployment netplane-operator', {
          labels: { 'helm.toolkit.fluxcd.io/name': 'net' },
          annotations: { 'meta.helm.sh/release-name': 'netplane', 'meta.helm.sh/release-namespace': 'netplane-operator' },
        }),
      ),
      [MANAGED],
    ],
    ['a definition of Argo CD', having('netplane', crd({ metadata: { labels: { 'argocd.argoproj.io/instance': 'net' } } })), [MANAGED]],
    [
      'a Deployment of another product that Argo CD looks after',
      having('netplane', object('apps/v1 Deployment', 'kube-system/web', { metadata: { labels: { 'argocd.argoproj.io/instance': 'x' } } })),
      [],
    ],
    [
      'agents that the operator leaves alone',
      having(
        'operator',
        marked('operator', 'DaemonSet netplane-node', { annotations: { 'unsupported.operator.netplane.io/ignore': 'true' } }),
      ),
      ['the operator was told to leave the agents alone'],
    ],
    [
      'an Installation of Argo CD',
      having('operator', marked('operator', 'Installation default', { annotations: { 'argocd.argoproj.io/tracking-id': 'net:x' } })),
      ['another program looks after the Installation'],
    ],
  ],
  'side-cars': [
    ['a side-car in Standard mode', having('netplane', sideCar), [SIDE_CARS]],
    ['a side-car in BPF mode', having('bpf', sideCar), [BPF_SIDE_CARS]],
    ['an injector that adds it', having('netplane', injector('- name: dikastes')), [SIDE_CARS]],
    ['an injector that adds nothing of ours', having('netplane', injector('- name: istio-proxy')), []],
  ],
}

describe.each(Object.entries(CASES))('checks of %s', (_, cases) => {
  test.each(cases)('%s', (_title, objects, checks) => {
    expect(checksOf(objects)).toEqual(checks)
  })
})

test('each check has a case in which it finds something, and one in which it does not', () => {
  const seen = new Set(Object.values(CASES).flatMap((cases) => cases.flatMap(([, , checks]) => checks)))
  const inTests = [...REFUSALS, ...WARNINGS].map(({ when }) => when).filter((when) => !when.startsWith('Kubernetes is older'))
  expect(inTests.filter((when) => !seen.has(when))).toEqual([])
  expect(checksOf(installed('3.27', 'netplane'))).toEqual([])
})

describe('Kubernetes', () => {
  const old = (version: '3.27' | '3.30'): string =>
    findInstallation(facts(installed(version, 'netplane'), 'v1.29.4'))
      .refusals.map(refusalText)
      .join('\n')

  test('older than 1.31 is to be upgraded first, and says by which version of the product', () => {
    expect(old('3.27')).toBe(
      'Kubernetes: version: "v1.29.4": kinds of this version need 1.31. Upgrade Kubernetes first, to 1.31 or later, one minor version after the other; take v3.29 or v3.30 of the product on the way, which are the ones made for it',
    )
    expect(old('3.30')).toContain('v3.30.0 may stay meanwhile')
  })

  test('of 1.31 is new enough, and files need not say it', () => {
    expect(checksOf(installed('3.27', 'netplane'), 'v1.31.0')).toEqual([])
    expect(findInstallation({ serverVersion: undefined, objects: installed('3.27', 'netplane') }).refusals).toEqual([])
  })
})

test('all that speaks against an upgrade is told at once, each with its object and a remedy', () => {
  const objects = having(
    'netplane',
    operator,
    node('w', { 'kubernetes.io/os': 'windows' }),
    marked('netplane', 'DaemonSet netplane-node', { labels: { 'addonmanager.kubernetes.io/mode': 'Reconcile' } }),
    crd({ storedVersions: ['v1', 'v2'], metadata: { labels: { 'argocd.argoproj.io/instance': 'net' } } }),
  )
  const { found, refusals } = findInstallation(facts(objects, 'v1.30.1'))
  expect(found?.version).toBe('3.27.0')
  expect(refusals.map(({ resource }) => resource)).toEqual([
    'Kubernetes',
    'Node w',
    'Deployment netplane-operator/netplane-operator',
    'CustomResourceDefinition ippools.crd.netplane.io',
    'DaemonSet kube-system/netplane-node',
    'CustomResourceDefinition ippools.crd.netplane.io',
  ])
  expect(refusals.filter(({ reason, remedy }) => reason === '' || remedy === '')).toEqual([])
})

test('definitions of one manager are told in one line', () => {
  const labels = { 'argocd.argoproj.io/instance': 'net' }
  const tier = definition('tiers.crd.netplane.io', { group: 'crd.netplane.io', version: 'v1', kind: 'Tier', metadata: { labels } })
  const { refusals } = findInstallation(facts(having('netplane', crd({ metadata: { labels } }), tier)))
  expect(refusals.map(refusalText)).toEqual([
    `CustomResourceDefinition ippools.crd.netplane.io, tiers.crd.netplane.io: metadata['argocd.argoproj.io/instance']: "net": Argo CD (argocd.argoproj.io/instance: net) looks after it, and puts back what is changed. Let Argo CD give it up first, without deleting it, and take the mark away`,
  ])
})
