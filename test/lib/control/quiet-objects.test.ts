// SPDX-License-Identifier: Apache-2.0
/** What of a Node, a pod and a NodeNetwork is no change, and what is. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiObject } from '#lib/api/resource.ts'
import { Informer } from '#lib/api/informer.ts'
import { quietNode, quietNodeNetwork, quietPod } from '#lib/control/quiet-objects.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

function node(version: number, more: { readonly ready?: string; readonly labels?: Readonly<Record<string, string>> } = {}): ApiObject {
  const heartbeat = `2026-11-27T00:00:0${version}Z`
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: 'a',
      resourceVersion: `${version}`,
      labels: more.labels ?? {},
      managedFields: [{ manager: 'kubelet', time: heartbeat }],
    },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      images: [{ names: [`image-${version}`] }],
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      conditions: [
        { type: 'Ready', status: more.ready ?? 'True', lastHeartbeatTime: heartbeat, lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  }
}

test('heartbeats, images and versions go, and all else stays', () => {
  expect(quietNode(node(1, { labels: { a: 'b' } }))).toEqual({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'a', labels: { a: 'b' } },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
  })
})

test('of a pod what has become of it stays, and where it is; of a NodeNetwork what its agent says', () => {
  const labels = { 'app.kubernetes.io/name': 'netplane-node' }
  const metadata = { namespace: 'n', name: 'p', labels, resourceVersion: '1', managedFields: [{ manager: 'kubelet' }] }
  const initContainers = [{ name: 'kernel', image: 'i', env: [{ name: 'A', value: 'b' }] }]
  const status = { phase: 'Running', initContainerStatuses: [{ name: 'kernel', state: {} }] }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'a', containers: [{ name: 'c' }], initContainers }, status }
  expect(quietPod(pod)).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'n', name: 'p', labels },
    spec: { nodeName: 'a', initContainers: [{ name: 'kernel' }] },
    status,
  })
  const network = { apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name: 'a', uid: 'u', resourceVersion: '1' } }
  const said = { ...network, spec: { blocks: ['10.0.0.0/26'] }, status: { version: 'v3.31.5' } }
  const { apiVersion, kind } = network
  expect(quietNodeNetwork(said)).toEqual({ apiVersion, kind, metadata: { name: 'a', uid: 'u' }, status: { version: 'v3.31.5' } })
})

test('an informer that keeps no heartbeats tells of none, watches on from them, and tells of the rest', async () => {
  const stop = new AbortController()
  let told = 0
  const froms: string[] = []
  const client: ConstructorParameters<typeof Informer>[0]['client'] = {
    list: () => Promise.resolve([]),
    async *pages() {
      yield await Promise.resolve({ items: [node(1)], resourceVersion: '1', continue: '' })
    },
    async *watch(_of, { resourceVersion }) {
      froms.push(resourceVersion)
      if (froms.length === 2) stop.abort()
      else
        for (const object of [node(2), node(3, { ready: 'False' }), node(4, { ready: 'False' })])
          yield await Promise.resolve([{ type: 'MODIFIED', object }])
    },
  }
  const clock = new FakeClock()
  const informer = new Informer({
    ...{ client, clock, collection: { apiVersion: 'v1', kind: 'Node' }, keep: quietNode },
    onChange: () => told++,
    onFailure: () => undefined,
  })
  const running = informer.run(stop.signal)
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
  clock.advance(60_000)
  await running
  // of the list, and that it is not ready
  expect(told).toBe(2)
  expect(froms).toEqual(['1', '4'])
  expect(informer.objects.get('/a')).toEqual(quietNode(node(4, { ready: 'False' })))
})
