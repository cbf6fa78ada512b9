// SPDX-License-Identifier: Apache-2.0
/** What a component says of itself, by its controller's counts and its pods. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { rolloutState } from '#lib/control/rollout.ts'

const daemonSet = (status: object, generation = 3): ApiObject =>
  asApiObject({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'netplane-node', namespace: 'netplane-system', generation },
    spec: {},
    status: { observedGeneration: 3, ...status },
  })

function pod(node: string, status: object, metadata: object = {}): ApiObject {
  return asApiObject({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `netplane-node-${node}`, namespace: 'netplane-system', ...metadata } },
    ...{ spec: { nodeName: node }, status },
  })
}

const ready = (node: string): ApiObject => pod(node, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
const unready = (node: string): ApiObject => pod(node, { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] })
const waits = (node: string, reason: string, more: object = {}): ApiObject =>
  pod(node, {
    phase: 'Pending',
    containerStatuses: [{ name: 'netplane-node', image: 'netplane:x', state: { waiting: { reason } }, ...more }],
  })
const ALL = { desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 }

test('a component whose pods are all ready and of the newest version is available', () => {
  expect(rolloutState(daemonSet(ALL), [ready('a'), ready('b')])).toEqual({})
})

test('a cluster without nodes has all the pods that it wants', () => {
  expect(rolloutState(daemonSet({ desiredNumberScheduled: 0 }), [])).toEqual({})
})

test('a component without its object, or whose last change was not seen, is not available', () => {
  expect(rolloutState(undefined, [])).toMatchObject({ unavailable: { reason: 'NotCreated' }, progressing: { reason: 'NotCreated' } })
  expect(rolloutState(daemonSet(ALL, 4), [])).toMatchObject({ unavailable: { reason: 'NotObserved' } })
  // a watch that has not told of the last change yet
  expect(rolloutState(daemonSet(ALL), [ready('a'), ready('b')], 4)).toMatchObject({ unavailable: { reason: 'NotObserved' } })
})

test('a rollout says how far it is and which nodes it waits for', () => {
  const half = { desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 1 }
  const message = '1 of 2 pods are of the newest version, 1 are ready; not ready: b'
  expect(rolloutState(daemonSet(half), [ready('a'), unready('b')])).toEqual({
    unavailable: { reason: 'RollingOut', message },
    progressing: { reason: 'RollingOut', message },
  })
})

test('a pod without a place is told by the node that it is for', () => {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['b'] }]
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } }
  const status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: 'no room' }] }
  const pending = asApiObject({ ...pod('', status), spec: { affinity: { nodeAffinity } } })
  const message = '2 of 2 pods are of the newest version, 1 are ready; not ready: b'
  expect(rolloutState(daemonSet({ ...ALL, numberAvailable: 1 }), [ready('a'), pending])).toMatchObject({ progressing: { message } })
})

test('old pods that are all ready are available while new ones come', () => {
  const old = { ...ALL, updatedNumberScheduled: 0 }
  expect(rolloutState(daemonSet(old), [ready('a'), ready('b')])).toMatchObject({ progressing: { reason: 'RollingOut' } })
  expect(rolloutState(daemonSet(old), [ready('a'), ready('b')]).unavailable).toBeUndefined()
})

test.each([
  ['CrashLoopBackOff', 'CrashLoop', 'netplane-node ends again and again: Error, exit code 2'],
  ['ImagePullBackOff', 'ImagePull', 'image netplane:x cannot be pulled'],
  ['ErrImagePull', 'ImagePull', 'image netplane:x cannot be pulled'],
])('a pod in %s is told with its node', (waiting, reason, message) => {
  const last = { lastState: { terminated: { reason: 'Error', exitCode: 2 } } }
  const one = { ...ALL, numberAvailable: 1 }
  const cause = { reason, message: `b: ${message}` }
  expect(rolloutState(daemonSet(one), [ready('a'), waits('b', waiting, last)])).toMatchObject({ unavailable: cause, degraded: cause })
})

test.each([
  ['ErrImagePull', 'failed to pull and unpack image "netplane:x": no such host'],
  ['ImagePullBackOff', 'Back-off pulling image "netplane:x": ErrImagePull: failed to pull and unpack image "netplane:x": no such host'],
])('the cause of %s is told the same while the kubelet tries and while it waits', (reason, message) => {
  const status = { phase: 'Pending', containerStatuses: [{ name: 'n', image: 'netplane:x', state: { waiting: { reason, message } } }] }
  const told = 'b: image netplane:x cannot be pulled: failed to pull and unpack image "netplane:x": no such host'
  expect(rolloutState(daemonSet({ ...ALL, numberAvailable: 1 }), [pod('b', status)])).toMatchObject({ degraded: { message: told } })
})

test('a long cause of an image that cannot be pulled keeps its end', () => {
  const message = `failed to resolve ${'x'.repeat(1000)}: no such host`
  const status = {
    phase: 'Pending',
    containerStatuses: [{ name: 'n', image: 'i', state: { waiting: { reason: 'ErrImagePull', message } } }],
  }
  const { degraded } = rolloutState(daemonSet({ ...ALL, numberAvailable: 1 }), [pod('b', status)])
  expect(degraded?.message).toMatch(/^b: image i cannot be pulled: failed to resolve x+…x+: no such host$/)
})

test('a pod that ends again and again says so also while it runs', () => {
  const runs = { ready: false, restartCount: 3, state: { running: {} }, lastState: { terminated: { reason: 'Error', exitCode: 1 } } }
  const one = pod('b', { phase: 'Running', containerStatuses: [{ name: 'netplane-node', image: 'i', ...runs }] })
  expect(rolloutState(daemonSet({ ...ALL, numberAvailable: 1 }), [ready('a'), one])).toMatchObject({ degraded: { reason: 'CrashLoop' } })
})

test('a pod that no node has room for is pending, and a pod that goes is no trouble', () => {
  const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }]
  const one = { ...ALL, numberAvailable: 1 }
  const gone = pod('a', { phase: 'Running', conditions: [] }, { deletionTimestamp: '2026-11-26T00:00:00Z' })
  const { unavailable, degraded } = rolloutState(daemonSet(one), [gone, pod('b', { phase: 'Pending', conditions })])
  expect(unavailable?.message).toContain('not ready: b')
  expect(degraded).toBeUndefined()
})
