// SPDX-License-Identifier: Apache-2.0
/** One cluster for all end-to-end tests that need no other, with our agent on each node. The first of them makes it: a
 * run of others has none. Layer: test. */
import { readState } from '../../lab/state.ts'
import { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { installAgents } from '../../testkit/kubernetes/agents.ts'
import { isLong } from './length.ts'

/** E2E_CLUSTER: one that is up already, and stays. */
const kept = process.env['E2E_CLUSTER']
const NAME = kept ?? 'e2e'

/** Takes a minute the first time. */
export async function sharedCluster(): Promise<Cluster> {
  if (kept !== undefined || readState(NAME) !== undefined) return await Cluster.open(NAME)
  // upstream's tests of zones want three
  const cluster = await Cluster.up({ name: NAME, nodes: isLong ? 3 : 2, progress: (text) => console.log(`e2e: ${text}`) })
  try {
    await installAgents(cluster)
    await cluster.nodesReady()
    return cluster
  } catch (thrown) {
    await cluster[Symbol.asyncDispose]()
    throw thrown
  }
}

/** Vitest calls it before all files, and what it returns after them. */
export async function setup(): Promise<() => Promise<void>> {
  const remove = (): Promise<void> => (kept === undefined ? Cluster.remove(NAME) : Promise.resolve())
  // of a run that was killed
  await remove()
  return remove
}
