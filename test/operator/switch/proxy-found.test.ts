// SPDX-License-Identifier: Apache-2.0
/** kube-proxy as it is found on platforms of all kinds. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { managerOf } from '#operator/objects/manager.ts'
import { proxyFound, type ProxyInput } from '#operator/switch/proxy-found.ts'

const LINUX = { 'kubernetes.io/os': 'linux' }

function daemonSet(nodeSelector: object | undefined, metadata: object = {}): ApiObject {
  return asApiObject({
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'kube-proxy', generation: 2, ...metadata } },
    spec: { template: { spec: { nodeSelector } } },
    status: { observedGeneration: 2 },
  })
}

function network(spec: object, managedFields: readonly object[] = []): ApiObject {
  return asApiObject({ apiVersion: 'operator.openshift.io/v1', kind: 'Network', metadata: { name: 'cluster', managedFields }, spec })
}

function pod(node: string, ready = true, metadata: object = {}): ApiObject {
  const status = { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: '1970-01-01T00:00:07Z' }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: `proxy-${node}`, ...metadata }, spec: { nodeName: node }, status })
}

const nodes = ['a', 'b'].map((name) => asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: LINUX } }))

function found(input: Partial<ProxyInput>): ReturnType<typeof proxyFound> {
  return proxyFound({ action: 'node-selector', daemonSet: undefined, network: undefined, pods: [], nodes, sight: [], ...input })
}

test.each([
  ['as it is made', LINUX, 'running'],
  ['without a selector', undefined, 'running'],
  ['as we stop it', { ...LINUX, 'netplane.io/kube-proxy': 'disabled' }, 'stopped'],
  ['as the guide of another stops it', { 'non-calico': 'true' }, 'stopped-by-hand'],
])('a DaemonSet %s', (_, selector, state) => {
  expect(found({ daemonSet: daemonSet(selector) })).toMatchObject({ state, canBeChanged: true, isSettled: true })
})

test('what no node has is told of one that was stopped by hand', () => {
  expect(found({ daemonSet: daemonSet({ ...LINUX, 'non-calico': 'true' }) }).selector).toBe('non-calico=true')
  expect(found({ daemonSet: daemonSet(LINUX) }).selector).toBe('')
})

test('a DaemonSet whose controller has not seen its last change is not settled, and pods that go are not ready', () => {
  const changed = { ...daemonSet(LINUX), status: { observedGeneration: 1 } }
  const pods = [pod('a'), pod('b', true, { deletionTimestamp: '2026-11-26T08:00:00Z' })]
  const { isSettled, pods: byNode, readySince } = found({ daemonSet: changed, pods })
  expect([...readySince]).toEqual([['a', 7000]])
  expect(isSettled).toBe(false)
  expect([...byNode]).toEqual([
    ['a', true],
    ['b', false],
  ])
})

test('pods without a DaemonSet are a kube-proxy that we cannot stop', () => {
  expect(found({ action: 'command', pods: [pod('a')] })).toMatchObject({ state: 'running', canBeChanged: false, hasPods: false })
  expect(found({ action: 'command' })).toMatchObject({ state: 'absent', canBeChanged: false })
})

test.each([
  [['Absent', 'Present'], 'running', false],
  [['Absent', undefined], 'absent', false],
  [[undefined, undefined], 'absent', true],
] as const)('a kube-proxy that is in no pod is as agents say: %j', (sight, state, isUnsaid) => {
  expect(found({ action: 'command', sight })).toMatchObject({ state, isUnsaid, canBeChanged: false, hasPods: false })
})

test('a DaemonSet of a platform that has a command for it, or keeps it, is not changed', () => {
  for (const action of ['command', 'keep'] as const)
    expect(found({ action, daemonSet: daemonSet(LINUX) })).toMatchObject({ state: 'running', canBeChanged: false })
})

test.each([
  [{ deployKubeProxy: true }, [], 'running'],
  [{}, [], 'absent'],
  [{ deployKubeProxy: false }, [], 'stopped-by-hand'],
  [{ deployKubeProxy: false }, [{ manager: 'netplane-operator', fieldsV1: { 'f:spec': { 'f:deployKubeProxy': {} } } }], 'stopped'],
  [{ deployKubeProxy: false }, [{ manager: 'kubectl-patch', fieldsV1: { 'f:spec': { 'f:deployKubeProxy': {} } } }], 'stopped-by-hand'],
])('OpenShift with %j is %3$s', (spec, managers, state) => {
  expect(found({ action: 'platform-operator', network: network(spec, managers) })).toMatchObject({ state, canBeChanged: true })
})

test.each([
  [
    { annotations: { 'argocd.argoproj.io/tracking-id': 'base:apps/DaemonSet:kube-system/kube-proxy' } },
    /^Argo CD \(argocd.*tracking-id: base/,
  ],
  [{ labels: { 'argocd.argoproj.io/instance': 'base' } }, /^Argo CD/],
  [{ labels: { 'addonmanager.kubernetes.io/mode': 'Reconcile' } }, /^the addon manager \(.*: Reconcile\)$/],
  [{ labels: { 'app.kubernetes.io/managed-by': 'pulumi' } }, /^pulumi/],
  [{ labels: { 'kustomize.toolkit.fluxcd.io/name': 'infra' } }, /^Flux/],
  [{ labels: { 'helm.toolkit.fluxcd.io/name': 'infra' } }, /^Flux/],
  [{ annotations: { 'meta.helm.sh/release-name': 'proxy' } }, /^Helm/],
  [
    { ownerReferences: [{ apiVersion: 'k3s.cattle.io/v1', kind: 'Addon', name: 'kube-proxy', controller: true }] },
    /^Addon kube-proxy \(ownerReferences: k3s/,
  ],
  [{ annotations: { 'operator.netplane.io/ignore': 'true' } }, /^the administrator/],
])('a DaemonSet with %j is another’s', (metadata, manager) => {
  expect(managerOf(daemonSet(LINUX, metadata))).toMatch(manager)
  expect(found({ daemonSet: daemonSet(LINUX, metadata) }).canBeChanged).toBe(false)
})

test('the owner of the platform’s object is no hindrance', () => {
  const own = network({ deployKubeProxy: true })
  const reference = { apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion', name: 'version', controller: true }
  const owned = { ...own, metadata: { ...own.metadata, ownerReferences: [reference] } }
  expect(found({ action: 'platform-operator', network: owned })).toMatchObject({ canBeChanged: true, manager: undefined })
})

test('labels that name no other manager are no hindrance', () => {
  const labels = { 'k8s-app': 'kube-proxy', 'app.kubernetes.io/managed-by': 'netplane-operator' }
  expect(managerOf(daemonSet(LINUX, { labels, annotations: { 'deprecated.daemonset.template.generation': '1' } }))).toBeUndefined()
})
