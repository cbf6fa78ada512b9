// SPDX-License-Identifier: Apache-2.0
/** What selectors see of pods, sets and host endpoints. Layer: test. */
import { expect, test } from 'vitest'
import { hostEndpointLabels, networkSetLabels, podLabels } from '#lib/model/effective-labels.ts'
import { LayeredLabels, type Labels } from '#lib/model/labels.ts'
import { model, namespace, pod, storeOf, v3 } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

const account = (name: string, labels: Readonly<Record<string, string>>): Manifest => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { namespace: 'shop', name, labels },
})

const { snapshot } = storeOf([
  namespace('shop', { team: 'sales', 'kubernetes.io/metadata.name': 'shop' }),
  account('front', { role: 'web' }),
  v3('Profile', 'kns.shop', { labelsToApply: { zone: 'inner', app: 'from the profile' } }),
  v3('Profile', 'default-allow', { labelsToApply: { guarded: 'no' } }),
])

const shown = (labels: Labels): Record<string, string> => Object.fromEntries([...labels].sort())

test('a pod has its own, its namespace’s, its service account’s and the built-in ones', () => {
  const object = model(pod('shop/web-1', { labels: { app: 'web' }, serviceAccount: 'front' }))
  if (object.kind !== 'Pod') throw new Error(object.kind)
  expect(shown(podLabels(object, snapshot))).toEqual({
    app: 'web',
    zone: 'inner',
    'netplane.io/namespace': 'shop',
    'netplane.io/orchestrator': 'k8s',
    'netplane.io/serviceaccount': 'front',
    'pcns.kubernetes.io/metadata.name': 'shop',
    'pcns.netplane.io/name': 'shop',
    'pcns.team': 'sales',
    'pcsa.netplane.io/name': 'front',
    'pcsa.role': 'web',
  })
})

test('a label of a pod does not say what its namespace is', () => {
  const liar = {
    'pcns.team': 'money',
    'pcsa.role': 'root',
    'netplane.io/namespace': 'pay',
    'netplane.io/serviceaccount': 'root',
    'netplane.io/name': 'mine',
  }
  const object = model(pod('lab/tool', { labels: liar }))
  if (object.kind !== 'Pod') throw new Error(object.kind)
  expect(shown(podLabels(object, snapshot))).toEqual({
    'netplane.io/name': 'mine',
    'netplane.io/namespace': 'lab',
    'netplane.io/orchestrator': 'k8s',
    'netplane.io/serviceaccount': 'default',
    'pcns.kubernetes.io/metadata.name': 'lab',
    'pcns.netplane.io/name': 'lab',
    'pcsa.netplane.io/name': 'default',
  })
})

test('a network set has its namespace’s if it is in one, a host endpoint those of its profiles', () => {
  const [local, global] = [model(v3('NetworkSet', 'shop/partners')), model(v3('GlobalNetworkSet', 'partners'))]
  const host = model(v3('HostEndpoint', 'n1', { node: 'n1', interfaceName: '*', profiles: ['default-allow'] }))
  if (local.kind !== 'NetworkSet' || global.kind !== 'GlobalNetworkSet' || host.kind !== 'HostEndpoint') throw new Error('kinds')
  expect(networkSetLabels(local, snapshot).get('pcns.team')).toBe('sales')
  expect(networkSetLabels(local, snapshot).get('netplane.io/namespace')).toBe('shop')
  expect(shown(networkSetLabels(global, snapshot))).toEqual({})
  expect(shown(hostEndpointLabels(host, snapshot))).toEqual({ guarded: 'no' })
})

test('pods of one account have what they inherit in common until it changes', () => {
  const objects = [namespace('shop', { team: 'sales' }), account('front', { role: 'web' })]
  const store = storeOf(objects)
  const inheritedBy = (name: string): Labels => {
    const object = model(pod(`shop/${name}`, { labels: { app: name }, serviceAccount: 'front' }))
    const labels = object.kind === 'Pod' ? podLabels(object, store.snapshot) : undefined
    if (!(labels instanceof LayeredLabels)) throw new Error('one layer')
    expect([labels.get('app'), labels.get('pcsa.role'), labels.has('other')]).toEqual([name, expect.any(String), false])
    expect(labels.size).toBe([...labels].length)
    return labels.inherited
  }
  const before = inheritedBy('a')
  expect(inheritedBy('b')).toBe(before)
  store.sink('test').apply([{ kind: 'upsert', object: model(account('front', { role: 'db' })) }])
  const after = inheritedBy('a')
  expect([before.get('pcsa.role'), after.get('pcsa.role')]).toEqual(['web', 'db'])
  expect(inheritedBy('b')).toBe(after)
})

test('host endpoints inherit from the profiles that they name, whatever other host endpoints name', () => {
  const profile = (name: string, value: string): Manifest => v3('Profile', name, { labelsToApply: { team: value } })
  const store = storeOf([profile('a', 'a'), profile('b', 'b'), profile('c', 'c')])
  const teamOf = (profiles: readonly string[]): string | undefined => {
    const object = model(v3('HostEndpoint', 'eth0', { node: 'n1', interfaceName: 'eth0', profiles }))
    return object.kind === 'HostEndpoint' ? hostEndpointLabels(object, store.snapshot).get('team') : undefined
  }
  expect([['c', 'a b'], ['c', 'a', 'b'], ['c', 'a'], ['c']].map(teamOf)).toEqual(['c', 'b', 'a', 'c'])
})
