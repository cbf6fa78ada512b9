// SPDX-License-Identifier: Apache-2.0
/** Edits are found, with who made them; what a server adds is none. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { differences } from '#upgrade/edits/differences.ts'
import { mirrorOf, repositoryOf } from '#upgrade/edits/image.ts'
import { managersIn } from '#upgrade/edits/managers.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { canonicalQuantity } from '#upgrade/edits/quantity.ts'
import type { OldVariant } from '#upgrade/found/found.ts'
import { saysNothing } from '#upgrade/edits/defaults.ts'
import { copyOf, EVERY, installation, ofAgents, ofPods, served, variable, type Change } from './served.ts'

function found(version: string, variant: OldVariant, ...changes: readonly Change[]): readonly string[] {
  const text = (value: unknown): string => (value === undefined ? '–' : JSON.stringify(value))
  return differences(pristineManifest(version, variant), installation(version, variant, changes)).map(
    ({ resource, field, base, mine, managers }) => `${resource}: ${field}: ${text(base)} → ${text(mine)} (${managers.join(', ')})`,
  )
}

test.each(EVERY)('%s %s: an untouched installation has no edit', (version, variant) => {
  expect(found(version, variant)).toEqual([])
})

test('a variable has its value, what it was, and who set it', () => {
  const where = 'DaemonSet kube-system/netplane-node: spec.template.spec.containers[netplane-node].env'
  expect(
    found('3.27.5', 'netplane', variable('FELIX_LOGSEVERITYSCREEN', 'Debug'), variable('IP', 'none'), variable('CLUSTER_TYPE', undefined)),
  ).toEqual([
    `${where}[CLUSTER_TYPE]: "k8s,bgp" → – ()`,
    `${where}[IP]: "autodetect" → "none" (kubectl-set)`,
    `${where}[FELIX_LOGSEVERITYSCREEN]: – → "Debug" (kubectl-set)`,
  ])
})

test('each field of a container is by itself, and a whole container is one edit', () => {
  const pod = 'DaemonSet kube-system/netplane-node: spec.template.spec'
  const limits: Change = { resource: 'DaemonSet netplane-node', steps: ofAgents('resources', 'limits'), value: { memory: '512Mi' } }
  const sidecar = { name: 'shipper', image: 'example.com/shipper:1' }
  const added: Change = { resource: 'DaemonSet netplane-node', steps: ofPods('containers', '[shipper]'), value: sidecar }
  expect(found('3.27.5', 'netplane', limits, added)).toEqual([
    `${pod}.containers[netplane-node].resources.limits.memory: – → "512Mi" ()`,
    `${pod}.containers[shipper]: – → {"name":"shipper","image":"example.com/shipper"} ()`,
  ])
})

test('the list of plugins is read, not compared as a text', () => {
  const list = { name: 'k8s-pod-network', plugins: [{ type: 'netplane', mtu: 1400 }] }
  const change: Change = {
    resource: 'ConfigMap netplane-config',
    steps: ['data', 'cni_network_config'],
    value: JSON.stringify(list).replace('1400', '__CNI_MTU__'),
    manager: 'kubectl-edit',
  }
  expect(found('3.30.0', 'netplane', change)).toContain(
    'ConfigMap kube-system/netplane-config: data.cni_network_config.plugins[portmap]: {"type":"portmap","snat":true,"capabilities":{"portMappings":true}} → – ()',
  )
  expect(found('3.30.0', 'netplane', change).join('\n')).not.toContain('.mtu')
  expect(found('3.30.0', 'netplane', { ...change, value: 'no JSON' })[0]).toMatch(
    /data\.cni_network_config: .* → "no JSON" \(kubectl-edit\)/,
  )
})

test('an object that is gone is one edit', () => {
  const live = installation('3.27.5', 'netplane').filter(({ kind }) => kind !== 'Deployment')
  const [only, ...more] = differences(pristineManifest('3.27.5', 'netplane'), live)
  expect([only?.resource, only?.field, more]).toEqual(['Deployment kube-system/netplane-controllers', '', []])
})

test('a budget that the server shows in another version is the same', () => {
  const live = installation('3.20.6', 'netplane').map((one) =>
    one.kind === 'PodDisruptionBudget' ? asApiObject({ ...one, apiVersion: 'policy/v1' }) : one,
  )
  expect(differences(pristineManifest('3.20.6', 'netplane'), live)).toEqual([])
})

test('without managedFields the last apply says who wrote it', () => {
  const [object] = pristineManifest('3.27.5', 'netplane').filter(({ kind }) => kind === 'ConfigMap')
  const edited = asApiObject({ ...object, data: { ...(object?.['data'] as object), veth_mtu: '1400' } })
  const metadata = { ...served(edited).metadata, managedFields: [] }
  const managersOf = (data: object): unknown =>
    differences([asApiObject(object)], [asApiObject({ ...edited, data: { ...(edited['data'] as object), ...data }, metadata })]).map(
      ({ managers }) => managers,
    )
  expect([managersOf({}), managersOf({ veth_mtu: '1300' })]).toEqual([[['kubectl-client-side-apply']], [[]]])
})

type At = readonly (string | number)[]

/** Of everything but what an object is called. */
function rawLeaves(value: unknown, at: At = []): readonly At[] {
  if (typeof value !== 'object' || value === null) return /^(apiVersion|kind|.*metadata,name(space)?)$/.test(String(at)) ? [] : [at]
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value)
  return keys.flatMap((key) => rawLeaves(Reflect.get(value, key), [...at, key]))
}

test('who wrote the value of a variable counts, not who named it', () => {
  const owned = (manager: string, fields: object): object => ({
    manager,
    fieldsV1: {
      'f:spec': { 'f:containers': { 'k:{"name":"a"}': { 'f:env': { 'k:{"name":"X"}': { '.': {}, 'f:name': {}, ...fields } } } } },
    },
  })
  const managersOf = (...managedFields: readonly object[]): readonly string[] =>
    managersIn(asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', managedFields } }))(
      ['spec', 'containers', '[a]', 'env', '[X]'],
      '1',
    )
  expect(managersOf(owned('first', {}), owned('second', { 'f:value': {} }))).toEqual(['second'])
  expect(managersOf(owned('second', { 'f:value': {} }), owned('first', { 'f:value': {} }))).toEqual(['first', 'second'])
  expect(managersOf({ ...owned('kubelet', {}), subresource: 'status' })).toEqual([])
})

const leaves = pristineManifest('3.27.5', 'typha').flatMap((object) => rawLeaves(object).map((at) => ({ object, at })))

test.each([undefined, 'other than before', { other: ['than', 'before'] }])('any leaf of any object is found that becomes %j', (value) => {
  fc.assert(
    fc.property(fc.constantFrom(...leaves), ({ object, at }) => {
      const live = copyOf(served(object))
      const around = at.slice(0, -1).reduce<unknown>((inner, key) => Reflect.get(inner as object, key), live) as object
      const before: unknown = Reflect.get(around, at.at(-1) ?? '')
      Reflect.set(around, at.at(-1) ?? '', value)
      const isDefault = value === undefined && saysNothing([String(at.at(-1)), before], around as Record<string, unknown>, '')
      expect(differences([object], [asApiObject(live)]).length > 0).toBe(!isDefault)
    }),
  )
})

test.each([
  ['0.25', '250m'],
  ['1000m', '1'],
  ['1024Mi', '1Gi'],
  ['1e3', '1000'],
  [2, '2'],
  ['100', '100'],
  ['a lot', 'a lot'],
])('the amount %s is %s', (quantity, expected) => {
  expect(canonicalQuantity(quantity)).toBe(expected)
})

test.each([
  ['netplane/node:v3.27.0', 'netplane/node'],
  ['docker.io/netplane/node:v3.27.0', 'netplane/node'],
  ['quay.io/netplane/node@sha256:abc', 'netplane/node'],
  ['registry:5000/netplane/node:v3.27.0@sha256:abc', 'registry:5000/netplane/node'],
])('the repository of %s is %s', (image, expected) => {
  expect(repositoryOf(image)).toBe(expected)
})

test.each([
  ['registry:5000/netplane/node', { registry: 'registry:5000', imagePath: '' }],
  ['registry.example.com/mirror/netplane/node', { registry: 'registry.example.com', imagePath: 'mirror' }],
  ['registry.example.com/team/node', { registry: 'registry.example.com', imagePath: 'team' }],
  ['acme/node', { registry: '', imagePath: 'acme' }],
  ['acme/special-agent', undefined],
])('a copy of the image at %s', (image, expected) => {
  expect(mirrorOf(image, 'netplane/node')).toEqual(expected)
})
