// SPDX-License-Identifier: Apache-2.0
/** The steps by which an Installation goes. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { renderNamespace } from '#lib/render/render.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { SILENT_TIMEOUT_MS, Removal, type RemovalInput } from '#operator/run/removal.ts'

const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: 'BPF' })
const render = { namespace: 'netplane-system', image: 'netplane:1', computed }

function node(name: string, ready: 'True' | 'False' | 'Unknown' = 'False', labels: object = { 'kubernetes.io/os': 'linux' }): ApiObject {
  const status = { conditions: [{ type: 'Ready', status: ready }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status })
}

function pod(app: string, nodeName: string, ready = true): ApiObject {
  const status = { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] }
  const metadata = { name: `${app}-${nodeName}`, labels: { 'app.kubernetes.io/name': app } }
  return asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName }, status })
}

function crashing(nodeName: string): ApiObject {
  const terminated = { reason: 'Error', exitCode: 1 }
  const initContainerStatuses = [{ name: 'cleanup', state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated } }]
  const failing = pod('netplane-cleanup', nodeName, false)
  return { ...failing, status: { ...(failing['status'] as object), initContainerStatuses } }
}

/** When it was made, or is to go. */
const BEGUN = '2026-11-26T08:00:00Z'
const begun = Date.parse(BEGUN)
/** The usual nodeTimeout. */
const LATE_MS = 600_000

const set = (name: string): ApiObject =>
  asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name, creationTimestamp: BEGUN } })
const kinds = (objects: readonly ApiObject[]): readonly string[] => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)

function input(more: Partial<RemovalInput>): RemovalInput {
  return {
    render,
    place: [renderNamespace('netplane-system')],
    isInstalled: true,
    agents: undefined,
    cleanup: undefined,
    pods: [],
    nodes: [node('a'), node('b')],
    now: 0,
    wall: begun,
    ...more,
  }
}

test('agents go first, their rights stay until the last of them has ended', () => {
  const removal = new Removal()
  const first = removal.step(input({ agents: set('netplane-node'), pods: [pod('netplane-node', 'a')] }))
  expect(first.state.progressing?.message).toBe('agents still run on a')
  expect(kinds(first.objects)).toContain('ClusterRole netplane-node')
  expect(kinds(first.objects).filter((name) => name.startsWith('DaemonSet'))).toEqual([])
  const second = removal.step(input({ pods: [pod('netplane-node', 'a')] }))
  expect(second.state.progressing?.message).toBe('agents still run on a')
})

test('nodes are cleaned once no agent runs, and named until they are', () => {
  const removal = new Removal()
  const step = removal.step(input({ pods: [pod('netplane-cleanup', 'a'), pod('netplane-cleanup', 'b', false)] }))
  expect(kinds(step.objects)).toEqual(['Namespace netplane-system', 'ServiceAccount netplane-cleanup', 'DaemonSet netplane-cleanup'])
  expect(step.state.progressing?.message).toBe('still to be cleaned: b')
  const last = removal.step(input({ cleanup: set('netplane-cleanup'), pods: [pod('netplane-cleanup', 'a'), pod('netplane-cleanup', 'b')] }))
  expect(kinds(last.objects)).toEqual(['Namespace netplane-system'])
  expect(last.isDone).toBe(false)
  expect(removal.step(input({})).isDone).toBe(true)
  expect(removal.left).toBeUndefined()
})

test('nodes of another system are not waited for', () => {
  const removal = new Removal()
  expect(removal.step(input({ nodes: [node('w', 'True', { 'kubernetes.io/os': 'windows' })] })).isDone).toBe(true)
})

test('a node whose kubelet is silent is left after a while, and told', () => {
  const removal = new Removal()
  const nodes = [node('a'), node('b', 'Unknown')]
  const pods = [pod('netplane-cleanup', 'a'), pod('netplane-node', 'b')]
  expect(removal.step(input({ nodes, pods, now: 0 })).state.progressing?.message).toBe('agents still run on b')
  expect(removal.step(input({ nodes, pods, now: SILENT_TIMEOUT_MS })).isDone).toBe(true)
  expect(removal.left).toEqual({ nodes: ['b'], message: 'not cleaned, as they did not answer: b' })
})

test('a node that answers and is not clean is named while it is waited for, and left after nodeTimeout', () => {
  const removal = new Removal()
  const cleanup = set('netplane-cleanup')
  const pods = [pod('netplane-cleanup', 'a'), crashing('b')]
  const before = removal.step(input({ cleanup, pods, now: 1, wall: begun + LATE_MS - 1 }))
  expect(before.state.progressing?.message).toBe('still to be cleaned: b')
  expect(before.state.degraded?.message).toMatch(/^b: cleanup ends again and again/)
  expect(removal.left).toBeUndefined()
  const after = removal.step(input({ cleanup, pods, now: 2, wall: begun + LATE_MS }))
  expect(kinds(after.objects)).toEqual(['Namespace netplane-system'])
  const message = 'not clean after 10m: b; b: cleanup ends again and again: Error, exit code 1'
  expect(removal.left).toEqual({ nodes: ['b'], message })
  expect(after.state.progressing?.message).toBe(message)
  expect(removal.step(input({ now: 3, wall: begun + LATE_MS })).isDone).toBe(true)
})

test('another operator does not wait for it anew', () => {
  const removal = new Removal()
  removal.step(input({ cleanup: set('netplane-cleanup'), nodes: [node('a'), node('b', 'Unknown')], wall: begun + LATE_MS }))
  expect(removal.left).toEqual({ nodes: ['a', 'b'], message: 'not clean after 10m: a, b' })
})

test('nodes have nodeTimeout from when their clean-up begins', () => {
  const step = new Removal().step(input({ wall: begun + 100 * LATE_MS }))
  expect(step.state.progressing?.message).toBe('still to be cleaned: a, b')
})

test('an agent that does not end is waited for as long, then its node is to be cleaned', () => {
  const removal = new Removal()
  const going = pod('netplane-node', 'b')
  const pods = [pod('netplane-cleanup', 'a'), { ...going, metadata: { ...going.metadata, deletionTimestamp: BEGUN } }]
  const message = (wall: number): string | undefined => removal.step(input({ pods, wall })).state.progressing?.message
  expect(message(begun + LATE_MS - 1)).toBe('agents still run on b')
  expect(message(begun + LATE_MS)).toBe('still to be cleaned: b')
})

test('a cleanup that fails again and again is a fault of its node', () => {
  const step = new Removal().step(input({ pods: [crashing('a')] }))
  expect(step.state.degraded).toEqual({ reason: 'CrashLoop', message: 'a: cleanup ends again and again: Error, exit code 1' })
})

test('a cleanup that is about to go has not cleaned its node', () => {
  const going = pod('netplane-cleanup', 'a')
  const pods = [{ ...going, metadata: { ...going.metadata, deletionTimestamp: '2026-11-26T08:00:00Z' } }, pod('netplane-cleanup', 'b')]
  expect(new Removal().step(input({ pods })).state.progressing?.message).toBe('still to be cleaned: a')
})

test('where agents were never made no node is touched', () => {
  const step = new Removal().step(input({ isInstalled: false }))
  expect(kinds(step.objects)).toEqual(['Namespace netplane-system'])
  expect(step.isDone).toBe(true)
})
