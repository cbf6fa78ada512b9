// SPDX-License-Identifier: Apache-2.0
/** How an installation is recognised. Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isApiObject, type ApiObject } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { findInstallation } from '#upgrade/found/find.ts'
import { TARGETS, type Found } from '#upgrade/found/found.ts'
import { agentsIn, imageVersion, versionOf } from '#upgrade/found/agents.ts'
import { VERSIONS } from '../stored/stored.ts'
import { agentPod, daemonSetName, facts, FORMS, information, installed, object, tagOf, withObjects, type Form } from './installed.ts'

function foundIn(objects: readonly ApiObject[]): Found {
  const { found, refusals } = findInstallation(facts(objects))
  if (found === undefined) throw new Error(JSON.stringify(refusals))
  return found
}

const EXPECTED: Readonly<Record<Form, Partial<Found>>> = {
  netplane: { method: 'manifest', variant: 'netplane', target: 'netplane', namespace: 'kube-system' },
  vxlan: { method: 'manifest', variant: 'vxlan', target: 'netplane', namespace: 'kube-system' },
  typha: { method: 'manifest', variant: 'typha', target: 'netplane', namespace: 'kube-system' },
  bpf: { method: 'manifest', variant: 'bpf', target: 'netplane', namespace: 'kube-system', isBpf: true },
  canal: { method: 'manifest', variant: 'canal', target: 'netplane-local', namespace: 'kube-system' },
  'policy-only': { method: 'manifest', variant: 'policy-only', target: 'netplane-policy-only', namespace: 'kube-system' },
  operator: { method: 'operator', variant: 'netplane', target: 'netplane', namespace: 'netplane-system', release: undefined },
  chart: { method: 'chart', variant: 'netplane', target: 'netplane', release: 'netplane-operator/netplane' },
  etcd: { method: 'manifest', variant: 'netplane', datastore: 'etcd' },
  'canal-etcd': { method: 'manifest', variant: 'canal', target: 'netplane-local', datastore: 'etcd' },
}

describe.each(VERSIONS)('an installation of %s', (version) => {
  test.each(FORMS)('as %s is recognised, and nothing speaks against an upgrade', (form) => {
    const { found, refusals, warnings } = findInstallation(facts(installed(version, form)))
    expect(refusals).toEqual([])
    expect(warnings).toEqual([])
    expect(found).toMatchObject({ isBpf: false, datastore: 'kubernetes', version: tagOf(version).slice(1), ...EXPECTED[form] })
    expect(found?.daemonSet.metadata.name).toBe(daemonSetName(form))
  })
})

test.each(['typha', 'bpf', 'etcd', 'canal-etcd'] as const)('an installation of 3.27 as %s is recognised', (form) => {
  expect(foundIn(installed('3.27', form))).toMatchObject({ version: '3.27.0', ...EXPECTED[form] })
})

test('variables with a value of their own are the environment, and those of config maps are not', () => {
  expect(foundIn(installed('3.27', 'vxlan')).environment).toEqual({
    DATASTORE_TYPE: 'kubernetes',
    FELIX_DEFAULTENDPOINTTOHOSTACTION: 'ACCEPT',
  })
})

function deployed(name: string): readonly ApiObject[] {
  const read = readManifest(name, readFileSync(join(packageRoot(), 'deploy/manifests', name), 'utf8'))
  return read.kind === 'ok' ? read.objects.map(({ value }) => value).filter(isApiObject) : []
}

test.each(TARGETS.filter((target) => readdirSync(join(packageRoot(), 'deploy/manifests')).includes(`${target}.yaml`)))(
  'an installation of ours by %s.yaml keeps its variant',
  (target) => {
    const { found, refusals } = findInstallation(facts(deployed(`${target}.yaml`)))
    expect(refusals).toEqual([])
    expect(found).toMatchObject({ method: 'manifest', variant: undefined, target, namespace: 'kube-system' })
    expect(found?.isBpf).toBe(target !== 'netplane-policy-only')
  },
)

test('an older operator whose pods have the network of the provider goes on with policy alone', () => {
  const installation = object('operator.netplane.io/v1 Installation', 'default', { spec: { cni: { type: 'AmazonVPC' } } })
  expect(foundIn(withObjects(installed('3.27', 'operator'), installation)).target).toBe('netplane-policy-only')
})

test('a release of the chart without annotations is found by what Helm keeps of it', () => {
  const operator = object('apps/v1 Deployment', 'netplane-operator/netplane-operator')
  expect(foundIn(withObjects(installed('3.20', 'chart'), operator))).toMatchObject({
    method: 'chart',
    release: 'netplane-operator/netplane',
  })
  expect(foundIn(withObjects(installed('3.20', 'operator'), operator))).toMatchObject({ method: 'operator', release: undefined })
})

test.each([
  ['the record of a release of another chart', 'default/sh.helm.release.v1.shop.v1', { owner: 'helm', status: 'deployed' }],
  ['a release that was taken away', 'netplane-operator/sh.helm.release.v1.netplane.v1', { owner: 'helm', status: 'uninstalled' }],
  ['a Secret that is not of Helm', 'netplane-operator/sh.helm.release.v1.netplane.v1', {}],
])('%s does not make an operator one of the chart', (_, name, labels) => {
  const secret = object('v1 Secret', name, { metadata: { labels } })
  expect(foundIn(withObjects(installed('3.20', 'operator'), secret)).method).toBe('operator')
})

test('a chart whose run was cut off before its Deployment was there again is known by the values that are kept', () => {
  const without = installed('3.27', 'chart').filter(({ metadata }) => metadata.name !== 'netplane-operator')
  const values = (annotations: object): ApiObject => object('v1 Namespace', 'netplane-operator', { metadata: { annotations } })
  expect(foundIn([...without, values({ 'upgrade.netplane.io/chart-values': '{}' })])).toMatchObject({
    ...{ method: 'chart', release: 'netplane-operator/netplane' },
  })
  expect(findInstallation(facts([...without, values({})])).found?.method).not.toBe('chart')
})

test('a release of a chart before 3.23 is kept in the namespace default', () => {
  const secret = object('v1 Secret', 'default/sh.helm.release.v1.netplane.v1', {
    metadata: { labels: { owner: 'helm', status: 'deployed' } },
  })
  expect(foundIn(withObjects(installed('3.20', 'operator'), secret)).release).toBe('default/netplane')
})

describe('BPF mode', () => {
  const felix = (bpfEnabled: boolean): ApiObject => object('crd.netplane.io/v1 FelixConfiguration', 'default', { spec: { bpfEnabled } })

  test('is what FelixConfiguration default says, and the variant stays that of the manifest', () => {
    expect(foundIn(withObjects(installed('3.27', 'vxlan'), felix(true)))).toMatchObject({ isBpf: true, variant: 'vxlan' })
  })

  test('is what the environment says where both say something', () => {
    expect(foundIn(withObjects(installed('3.27', 'bpf'), felix(false))).isBpf).toBe(true)
  })
})

describe('the version', () => {
  const name = 'kube-system/netplane-node'
  const pod = (node: string, tag: string): ApiObject => agentPod(`${name}-${node}`, { node, daemonSet: 'netplane-node', tag })
  const all = installed('3.27', 'netplane')

  test('is what most agents run, not what is to run', () => {
    const pods = ['a', 'b', 'c'].map((node) => pod(node, node === 'c' ? 'v3.27.0' : 'v3.26.4'))
    expect(foundIn(withObjects(all, ...pods)).version).toBe('3.26.4')
  })

  test('is that of the DaemonSet where no agent runs', () => {
    expect(foundIn(all.filter(({ kind }) => kind !== 'Pod')).version).toBe('3.27.0')
  })

  test.each(['netplane/node@sha256:0123', 'registry.example.com:5000/netplane/node', 'netplane/node:latest'])(
    'is that of ClusterInformation where the image is %s',
    (image) => {
      const set = object('apps/v1 DaemonSet', name, { spec: { template: { spec: { containers: [{ name: 'netplane-node', image }] } } } })
      const objects = withObjects(
        all.filter(({ kind }) => kind !== 'Pod'),
        set,
        information('crd.netplane.io/v1', { netplaneVersion: 'v3.27.3', datastoreReady: true }),
      )
      expect(foundIn(objects).version).toBe('3.27.3')
    },
  )

  test('goes by pods of the DaemonSet alone', () => {
    const strangers = ['x', 'y', 'z'].map((node) => agentPod(`shop/${node}`, { node, daemonSet: 'netplane-node', tag: 'v3.1.0' }))
    expect(foundIn(withObjects(all, ...strangers)).version).toBe('3.27.0')
    expect(agentsIn(facts(all)).map(versionOf)).toEqual(['3.27.0'])
  })
})

test.each([
  ['netplane/node:v3.27.0@sha256:0123', '3.27.0'],
  ['registry.example.com:5000/netplane/node:v3.20.6-amd64', '3.20.6'],
  ['registry.example.com:5000/netplane/node', undefined],
  ['netplane/node@sha256:0123', undefined],
  ['', undefined],
])('image %j is of version %s', (image, version) => {
  expect(imageVersion(image)).toBe(version)
})

test('once the import is done, agents of this version may stand beside those that they replace', () => {
  const [ours] = deployed('netplane-chained.yaml').filter(({ kind }) => kind === 'DaemonSet')
  const own = information('netplane.io/v3', { netplaneVersion: 'v3.27.0', datastoreReady: true })
  const locked = information('crd.netplane.io/v1', { netplaneVersion: 'v3.27.0', datastoreReady: false })
  const canal = withObjects(installed('3.27', 'canal'), ...(ours === undefined ? [] : [ours]))
  const { found, refusals, warnings } = findInstallation(facts(withObjects(canal, own, locked)))
  expect(refusals).toEqual([])
  expect(warnings).toEqual([])
  expect(found).toMatchObject({ variant: 'canal', daemonSet: { metadata: { name: 'canal' } } })
  expect(findInstallation(facts(canal)).found).toBeUndefined()
})
