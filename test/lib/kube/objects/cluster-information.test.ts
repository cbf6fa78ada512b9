// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { clusterInformationObject, clusterTypeOf, lockOf, readClusterInformation } from '#lib/kube/objects/cluster-information.ts'
import { whyLocked } from '#lib/model/cluster-information.ts'
import { clusterInformation, model, storeOf } from '../../../support/build.ts'

test('where a cluster runs, as its version and a node tell', () => {
  const of = (version: string, ...labels: readonly string[]) => clusterTypeOf(version, new Map(labels.map((label) => [label, ''])))
  expect([
    of('v1.34.4'),
    of('v1.31.2-eks-7f9249a', 'eks.amazonaws.com/nodegroup'),
    of('v1.31.1-gke.1678000'),
    of('v1.32.1+k3s1'),
    of('v1.31.3', 'kubernetes.azure.com/cluster'),
    of('v1.31.3', 'kops.k8s.io/instancegroup', 'unknown'),
  ]).toEqual(['k8s', 'k8s,eks', 'k8s,gke', 'k8s,k3s', 'k8s,aks', 'k8s,kops'])
})

test('ClusterInformation is read as it was written, and what is missing or of no use is missing', () => {
  const spec = { clusterGUID: 'g', clusterType: 'k8s', netplaneVersion: 'v1', datastoreReady: false }
  expect(readClusterInformation(clusterInformationObject(spec))).toEqual(spec)
  expect(readClusterInformation({ spec: { clusterGUID: '', clusterType: 1 } })).toEqual({})
  expect(readClusterInformation({})).toEqual({})
  expect([undefined, {}, clusterInformationObject({ ...spec, datastoreReady: true })].map(lockOf)).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(lockOf(clusterInformationObject(spec))).toContain('locked')
})

test.each([
  ['no object', [], false],
  ['a cluster that says nothing of it', [clusterInformation({ clusterGUID: 'g' })], false],
  ['an open one', [clusterInformation({ datastoreReady: true })], false],
  ['a locked one', [clusterInformation({ datastoreReady: false })], true],
  ['an object of another name', [clusterInformation({ datastoreReady: false }, 'other')], false],
])('of %s', (_, objects, isLocked) => {
  expect(whyLocked(storeOf(objects).snapshot) !== undefined).toBe(isLocked)
})

test('one whose datastoreReady cannot be read is refused with its field', () => {
  expect(() => model(clusterInformation({ datastoreReady: 'no' }))).toThrow('spec.datastoreReady')
})
