// SPDX-License-Identifier: Apache-2.0
/** Asking every node, once and again. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { finding } from '#lib/preflight/findings.ts'
import { writeReport } from '#lib/preflight/report.ts'
import { RUN_ANNOTATION } from '#lib/preflight/results.ts'
import { AGAIN_MS, NodeRun } from '#operator/preflight/node-run.ts'
import { SILENT_MS } from '#operator/status/silent-nodes.ts'

function node(name: string, ready: 'True' | 'Unknown' = 'True'): ApiObject {
  const status = { conditions: [{ type: 'Ready', status: ready }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/os': 'linux' } }, status })
}

function pod(nodeName: string, run: string): ApiObject {
  const terminated = { exitCode: 0, message: writeReport([]) }
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: nodeName, annotations: { [RUN_ANNOTATION]: run } },
    spec: { nodeName, initContainers: [{ name: 'kernel' }] },
    status: { initContainerStatuses: [{ name: 'kernel', state: { terminated } }] },
  })
}

const at = (now: number) => ({ question: 'q', pods: [] as ApiObject[], nodes: [node('a')], now, wall: 1_700_000_000_000 + now })

test('a question stays the same run until all have answered, and is asked again a while after', () => {
  const run = new NodeRun()
  const first = run.step(at(0)).run
  expect(run.step(at(10 * AGAIN_MS)).run).toBe(first)
  const over = run.step({ ...at(10 * AGAIN_MS), pods: [pod('a', first)] })
  expect(over.isOver).toBe(true)
  expect(run.step({ ...at(11 * AGAIN_MS), pods: [pod('a', first)] }).run).toBe(first)
  expect(run.step({ ...at(11 * AGAIN_MS + 1000), pods: [pod('a', first)] }).run).not.toBe(first)
})

test('answers to another question do not count', () => {
  const run = new NodeRun()
  const first = run.step(at(0)).run
  const other = run.step({ ...at(1), question: 'other', pods: [pod('a', first)] })
  expect(other.isOver).toBe(false)
  expect(other.results.waiting).toEqual(['a'])
})

test('a node whose kubelet is silent is not waited for after a while', () => {
  const run = new NodeRun()
  const nodes = [node('a'), node('b', 'Unknown')]
  const first = run.step({ ...at(0), nodes }).run
  const soon = run.step({ ...at(SILENT_MS - 1), nodes, pods: [pod('a', first)] })
  expect([soon.isOver, soon.silent]).toEqual([false, []])
  const later = run.step({ ...at(SILENT_MS), nodes, pods: [pod('a', first)] })
  expect([later.isOver, later.silent]).toEqual([true, ['b']])
})

/** Of a node that did not hear these peers. */
function deafTo(
  nodeName: string,
  run: string,
  { peers, startedAt }: { readonly peers: readonly string[]; readonly startedAt: string },
): ApiObject {
  const message = writeReport(peers.map((peer) => finding('vxlan-lost-from', peer, '10.0.0.1', 4789)))
  const terminated = { exitCode: 0, message, startedAt, finishedAt: startedAt }
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: nodeName, annotations: { [RUN_ANNOTATION]: run } },
    spec: { nodeName, initContainers: [{ name: 'vxlan' }] },
    status: { initContainerStatuses: [{ name: 'vxlan', state: { terminated } }] },
  })
}

test('a silent node that its peers do not hear holds up nothing', () => {
  const run = new NodeRun()
  const nodes = [node('a'), node('dead', 'Unknown')]
  const first = run.step({ ...at(0), nodes }).run
  const pods = [deafTo('a', first, { peers: ['dead'], startedAt: '2026-11-26T08:00:00Z' })]
  expect(run.step({ ...at(1), nodes, pods }).isOver).toBe(false)
  expect(run.step({ ...at(SILENT_MS), nodes, pods })).toMatchObject({ isOver: true, silent: ['dead'] })
})

test('peers that are apart each time are asked three times, and then told as not known', () => {
  const run = new NodeRun()
  const nodes = [node('a'), node('b')]
  let now = 0
  for (const [index, isLast] of [false, false, true].entries()) {
    const { run: id } = run.step({ ...at(now), nodes })
    const pods = [
      deafTo('a', id, { peers: ['b'], startedAt: '2026-11-26T08:00:00Z' }),
      deafTo('b', id, { peers: ['a'], startedAt: '2026-11-26T09:00:00Z' }),
    ]
    const state = run.step({ ...at(now + 1), nodes, pods })
    expect([state.isOver, state.unknown]).toEqual(isLast ? [true, ['a', 'b']] : [false, []])
    expect(state.tries).toBe(index + 1)
    // they are asked again at once
    now += 2
  }
})

test('looks that something blocked do not count as looks in which peers were apart', () => {
  const run = new NodeRun()
  const nodes = [node('a'), node('b')]
  let now = 0
  for (let looks = 0; looks < 3; looks++) {
    const { run: id } = run.step({ ...at(now), nodes })
    expect(run.step({ ...at(now + 1), nodes, pods: [pod('a', id), pod('b', id)] })).toMatchObject({ isOver: true, tries: 1 })
    now += 2 * AGAIN_MS
  }
  const { run: id } = run.step({ ...at(now), nodes })
  const pods = [
    deafTo('a', id, { peers: ['b'], startedAt: '2026-11-26T08:00:00Z' }),
    deafTo('b', id, { peers: ['a'], startedAt: '2026-11-26T09:00:00Z' }),
  ]
  expect(run.step({ ...at(now + 1), nodes, pods })).toMatchObject({ isOver: false, unknown: [] })
})

test('a failed probe of a node that dies later is not waited for', () => {
  const run = new NodeRun()
  const failing = (id: string): ApiObject => {
    const broken = pod('a', id)
    const waiting = { reason: 'ImagePullBackOff' }
    return { ...broken, status: { initContainerStatuses: [{ name: 'kernel', state: { waiting } }] } }
  }
  const first = run.step(at(0)).run
  expect(run.step({ ...at(1), pods: [failing(first)] }).results.failed.size).toBe(1)
  expect(run.step({ ...at(SILENT_MS), nodes: [node('a', 'Unknown')], pods: [failing(first)] })).toMatchObject({
    isOver: true,
    silent: ['a'],
  })
})
