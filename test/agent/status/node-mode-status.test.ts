// SPDX-License-Identifier: Apache-2.0
/** When the status of a NodeNetwork is written. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import type { InMode } from '#agent/proof/node-mode.ts'
import { NodeModeStatus } from '#agent/status/node-mode-status.ts'

const RUNNING = new AbortController().signal
const FROM_POD = { asked: 1, answered: 1, reason: undefined }
const PROVEN = {
  asked: 2,
  answered: 2,
  fromPod: FROM_POD,
  failed: [],
  nodePorts: ['192.0.2.1:30080'],
  udpNodePorts: ['192.0.2.1:30053'],
  at: 2000,
}

let written: unknown[]
let found: unknown
let inMode: InMode | undefined
let flows: number | undefined
let proxy: boolean | undefined
let isAnnounced: boolean

function agent(): NodeModeStatus {
  return new NodeModeStatus({
    api: {
      list: () => Promise.resolve([{ ...NODE_NETWORK, metadata: { name: 'n1' }, status: found }]),
      patch: (_, patch) => {
        written.push(isObject(patch) ? patch['status'] : patch)
        return Promise.resolve({ ...NODE_NETWORK, metadata: { name: 'n1' } })
      },
    },
    ...{ node: 'n1', version: 'v1', generations: () => ({ default: 1 }), inMode: () => inMode },
    ...{ hasProxy: () => proxy, otherFlows: () => flows, isAnnounced: () => isAnnounced },
  })
}

async function round(status: NodeModeStatus, now = 0): Promise<void> {
  for (let due = status.due(now); due.length > 0; due = status.due(now)) for (const { write } of due) await write(RUNNING)
}

beforeEach(() => {
  ;[written, found, inMode, flows, proxy, isAnnounced] = [
    [],
    undefined,
    { mode: 'BPF', since: 1000, proof: undefined },
    undefined,
    undefined,
    true,
  ]
})

test('a mode is told at once, and its proof when that is there', async () => {
  const status = agent()
  await round(status)
  await round(status)
  inMode = { mode: 'BPF', since: 1000, proof: PROVEN }
  await round(status)
  const dataplane = { mode: 'BPF', since: '1970-01-01T00:00:01.000Z', configurations: { default: 1 } }
  const proof = {
    mode: 'BPF',
    state: 'Proven',
    asked: 2,
    answered: 2,
    fromPod: { asked: 1, answered: 1, reason: '' },
    failed: [],
    nodePorts: ['192.0.2.1:30080'],
    udpNodePorts: ['192.0.2.1:30053'],
    at: '1970-01-01T00:00:02.000Z',
  }
  expect(written).toEqual([
    { version: 'v1', dataplane, proof: null, kubeProxy: null, flows: null },
    { version: 'v1', dataplane, proof, kubeProxy: null, flows: null },
  ])
})

test('an agent that begins again and finds all as it was writes nothing', async () => {
  inMode = { mode: 'BPF', since: 1000, proof: PROVEN }
  proxy = false
  await round(agent())
  found = written[0]
  inMode = { mode: 'BPF', since: 9000, proof: undefined }
  const next = agent()
  await round(next)
  inMode = { mode: 'BPF', since: 9000, proof: { ...PROVEN, asked: 3, answered: 3, at: 9500 } }
  await round(next)
  expect(written).toHaveLength(1)
  inMode = { mode: 'BPF', since: 9000, proof: { ...PROVEN, asked: 3, failed: ['x'], at: 9900 } }
  await round(next)
  expect(written[1]).toMatchObject({ proof: { state: 'Failed', failed: ['x'] }, dataplane: { since: '1970-01-01T00:00:01.000Z' } })
})

test('a proof from a pod is news where the one before was by the node alone, and not the other way round', async () => {
  const alone = { asked: 0, answered: 0, reason: 'no block' }
  inMode = { mode: 'BPF', since: 1000, proof: { ...PROVEN, fromPod: alone } }
  const status = agent()
  await round(status)
  for (const proof of [{ ...PROVEN, fromPod: { ...alone, reason: 'no block yet' } }, PROVEN, { ...PROVEN, fromPod: alone }]) {
    inMode = { mode: 'BPF', since: 1000, proof }
    await round(status)
  }
  expect(written.map((one) => isObject(one) && one['proof'])).toMatchObject([{ fromPod: alone }, { fromPod: { ...FROM_POD, reason: '' } }])
})

test('how many flows are left is told every ten minutes, and at once when none is', async () => {
  const status = agent()
  flows = 7
  await round(status, 0)
  flows = 5
  await round(status, 599_000)
  expect(written).toHaveLength(1)
  await round(status, 600_000)
  flows = 0
  await round(status, 601_000)
  expect(written.map((one) => isObject(one) && one['flows'])).toEqual([{ other: 7 }, { other: 5 }, { other: 0 }])
})

test('without its NodeNetwork nothing is written; when that is made anew, all is', async () => {
  isAnnounced = false
  const status = agent()
  await round(status)
  expect(written).toEqual([])
  isAnnounced = true
  await round(status)
  isAnnounced = false
  await round(status)
  isAnnounced = true
  await round(status)
  expect(written).toHaveLength(2)
})
