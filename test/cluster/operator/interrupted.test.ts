// SPDX-License-Identifier: Apache-2.0
/** Installations on a real cluster that do not go straight: something is in the way, or the operator is killed.
 * Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { at } from '../../../lab/raw.ts'
import { Random } from '../../../soak/random.ts'
import { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { SEED } from '../../support/steady/seed.ts'
import { importImage } from '../installed.ts'
import { Namespace } from '../namespaces.ts'
import type { RunningPod } from '../pods.ts'
import { FINDINGS, LOOKING, putInTheWay } from './in-the-way.ts'
import * as operator from './installed.ts'
import { nodeStates, settledNodeStates } from './node-state.ts'
import { allReached, goneAndClean, makePods, pause, seconds } from './outcome.ts'

const NODE = 'daemonset/netplane-node'
const KILLS = Number(process.env['KILLS'] ?? 2)
/** So long a preflight takes, and objects are made, at least. */
const SPANS_MS = { preflight: 6000, objects: 600 }

const random = new Random(SEED)
let cluster: Cluster
let namespace: Namespace
let pods: readonly RunningPod[] = []
/** of all nodes, before anything of ours was there */
let clean: Readonly<Record<string, readonly string[]>>

beforeAll(async () => {
  cluster = await Cluster.up({ name: 'interrupted' })
  await importImage(cluster)
  clean = await settledNodeStates(cluster)
  await operator.installOperator(cluster)
}, 15 * 60_000)

afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

async function isThere(object: string): Promise<boolean> {
  return (await cluster.tryKubectl(['get', object, '-n', operator.SYSTEM])).status === 0
}

test('what is in the way is told with nodes and remedies, and nothing is made; put right, it goes on by itself', async () => {
  const putRight = await putInTheWay(cluster)
  const before = await nodeStates(cluster)
  await operator.applyInstallation(cluster)
  const blocked = (): Promise<unknown> => operator.condition(cluster, 'preflight', 'Degraded')
  // of the node that answers first at first
  await expect.poll(async () => String(at(await blocked(), 'message')).split('. '), { timeout: 90_000 }).toEqual(FINDINGS)
  expect(await blocked()).toMatchObject({ status: 'True', reason: 'Blocked' })
  expect(await operator.madeNames(cluster)).toEqual(LOOKING)
  expect(await nodeStates(cluster)).toEqual(before)
  await putRight()
  const began = performance.now()
  await expect.poll(() => isThere(NODE), { timeout: 60_000 }).toBe(true)
  console.log(`operator: agents come ${seconds(began)} after nothing is in the way any more`)
  await operator.available(cluster)
  expect(await operator.condition(cluster, 'preflight', 'Available')).toMatchObject({ status: 'True', reason: 'Passed' })
  namespace = await Namespace.make(cluster, 'traffic')
  pods = await makePods(cluster, namespace.name)
  await allReached(cluster, namespace.name, pods)
})

test('an operator that is killed at any point of an install is followed by one that ends in the same state', async () => {
  const before = await operator.endState(cluster)
  for (let round = 1; round <= KILLS; round++) {
    await operator.deleteInstallation(cluster)
    await goneAndClean(cluster, clean)
    const kill = await operator.killerOf(cluster)
    await operator.applyInstallation(cluster)
    const within = round % 2 === 1 ? 'preflight' : 'objects'
    if (within === 'objects') await expect.poll(() => isThere('serviceaccount/netplane-node'), { timeout: 60_000, interval: 50 }).toBe(true)
    const after = random.below(SPANS_MS[within])
    await pause(after)
    await kill()
    const made = await operator.madeNames(cluster)
    console.log(`operator: SEED=${SEED}: killed ${after} ms into the ${within}, with ${made.length} objects there`)
    // but for the last of them: that one waits until the Lease is free
    if (round < KILLS) await operator.freeLease(cluster)
    await expect.poll(() => operator.endState(cluster), { timeout: 90_000, interval: 300 }).toEqual(before)
  }
  await operator.available(cluster)
  await allReached(cluster, namespace.name, pods)
})
