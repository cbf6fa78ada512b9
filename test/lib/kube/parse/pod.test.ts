// SPDX-License-Identifier: Apache-2.0
/** Pods. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { createInternPool } from '#lib/kube/parse/intern.ts'
import { model, pod } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

test('a pod is read', () => {
  expect(
    model(pod('shop/web-1', { node: 'n1', ips: ['10.0.0.1', 'fd00::1'], hostNetwork: true, terminating: true, labels: { app: 'web' } })),
  ).toEqual({
    kind: 'Pod',
    namespace: 'shop',
    name: 'web-1',
    nodeName: 'n1',
    podIPs: [parseAddr('10.0.0.1'), parseAddr('fd00::1')],
    hostNetwork: true,
    phase: 'Running',
    terminating: true,
    labels: new Map([['app', 'web']]),
    serviceAccount: 'default',
    ports: [],
  })
})

test('pods alike share their labels and named ports', () => {
  const of = {
    labels: { app: 'web' },
    serviceAccount: 'shop',
    ports: [
      { name: 'http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  }
  const shared = createInternPool()
  const [a, b] = ['a', 'b'].map((name) => parseObject(pod(name, of), { kind: 'Pod', namespace: 'default', name }, shared))
  if (a?.kind !== 'ok' || b?.kind !== 'ok' || a.value.kind !== 'Pod' || b.value.kind !== 'Pod') throw new Error('refused')
  expect(a.value).toMatchObject({
    serviceAccount: 'shop',
    ports: [
      { name: 'http', protocol: 6, port: 80 },
      { name: 'dns', protocol: 17, port: 53 },
    ],
  })
  expect([a.value.labels === b.value.labels, a.value.ports === b.value.ports]).toEqual([true, true])
})

test('ports without a name are left out: no rule can look for them', () => {
  const spec = {
    containers: [{ ports: [{ containerPort: 80 }, { name: 'odd', containerPort: 'x' }] }, {}],
    initContainers: [{ restartPolicy: 'Always', ports: [{ name: 'side', containerPort: 99 }] }],
  }
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec })).toMatchObject({
    ports: [{ name: 'side', protocol: 6, port: 99 }],
  })
})

test('a name that a pod has twice in one protocol means the first port, as it does to Services', () => {
  const spec = {
    containers: [
      { ports: [{ name: 'web', containerPort: 80 }] },
      {
        ports: [
          { name: 'web', containerPort: 81 },
          { name: 'web', containerPort: 82, protocol: 'UDP' },
        ],
      },
    ],
    initContainers: [{ restartPolicy: 'Always', ports: [{ name: 'web', containerPort: 83 }] }],
  }
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec })).toMatchObject({
    ports: [
      { name: 'web', protocol: 6, port: 80 },
      { name: 'web', protocol: 17, port: 82 },
    ],
  })
})

test('an init container that ends has no named ports', () => {
  const initContainers = [
    { ports: [{ name: 'plain', containerPort: 90 }] },
    { restartPolicy: 'OnFailure', ports: [{ name: 'again', containerPort: 91 }] },
    { restartPolicy: 'Always', ports: [{ name: 'side', containerPort: 92 }] },
  ]
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { initContainers } })).toMatchObject({
    ports: [{ name: 'side', protocol: 6, port: 92 }],
  })
})

test('of its annotations those that ask for addresses are kept as they are', () => {
  const annotations = { 'cni.netplane.io/ipv4pools': '["fast"]', 'example.org/note': 'long' }
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', annotations } })).toMatchObject({
    wishes: new Map([['cni.netplane.io/ipv4pools', '["fast"]']]),
  })
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', annotations: {} } })).not.toHaveProperty('wishes')
})

test('a pod is known by the id that its runtime has of it, also where the kubelet has it from a file', () => {
  const read = (metadata: object): unknown => model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', ...metadata } })
  expect(read({ uid: 'u1' })).toMatchObject({ uid: 'u1' })
  expect(read({ uid: 'u1', annotations: { 'kubernetes.io/config.mirror': 'f1' } })).toMatchObject({ uid: 'f1' })
  expect(read({})).not.toHaveProperty('uid')
})

test('a pod whose name was made for it says of which pods it is one, and who has made it', () => {
  const raw = {
    ...pod('shop/web-6d4b-x7x2p'),
    ...{
      metadata: {
        ...{ namespace: 'shop', name: 'web-6d4b-x7x2p', generateName: 'web-6d4b-' },
        ownerReferences: [
          { kind: 'Other', name: 'first' },
          { kind: 'ReplicaSet', name: 'web-6d4b', controller: true },
        ],
      },
    },
  }
  expect(model(raw)).toMatchObject({ group: { prefix: 'web-6d4b-', owner: 'ReplicaSet/web-6d4b' } })
  expect(model(pod('shop/alone'))).not.toHaveProperty('group')
})

test('a hand-written pod may say little', () => {
  expect(model({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, status: { podIP: '10.0.0.1' } })).toMatchObject({
    namespace: 'default',
    nodeName: undefined,
    podIPs: [parseAddr('10.0.0.1')],
    phase: 'Pending',
    hostNetwork: false,
    terminating: false,
  })
})

test.each([
  [{ podIP: 'x' }, 'status.podIP'],
  [{ podIP: 'x', podIPs: [{ ip: 'x' }] }, 'status.podIPs[0].ip'],
])('an address that cannot be read is left out and named: %j', (status, path) => {
  expect(parseObject({ status }, { kind: 'Pod', namespace: 'default', name: 'a' })).toMatchObject({
    value: { podIPs: [] },
    rejected: [{ path, reason: 'must be an IP address' }],
  })
})

test.each<[Manifest, string, string]>([
  [{ status: { podIPs: [{}] } }, 'status.podIPs[0].ip', 'is missing'],
  [{ status: { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] } }, 'status.podIPs', 'must be at most one of each family'],
  [{ status: { phase: 'Sleeping' } }, 'status.phase', 'must be Pending or Running or Succeeded or Failed or Unknown'],
  [{ spec: { hostNetwork: 1 } }, 'spec.hostNetwork', 'must be true or false'],
  [{ spec: { nodeName: 1 } }, 'spec.nodeName', 'must be text'],
])('%j is refused', (manifest, path, reason) => {
  expect(parseObject(manifest, { kind: 'Pod', namespace: 'default', name: 'a' })).toEqual({
    kind: 'rejected',
    rejected: [{ ref: 'Pod/default/a', path, reason }],
  })
})
