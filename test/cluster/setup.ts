// SPDX-License-Identifier: Apache-2.0
/** One cluster for all end-to-end tests, with our agent on each node. Layer: test. */
import { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { installAgents } from '../../testkit/kubernetes/agents.ts'
import { isLong } from './length.ts'

/** E2E_CLUSTER: one that is up already, and stays. */
const kept = process.env['E2E_CLUSTER']
export const CLUSTER = kept ?? 'e2e'

export async function setup(): Promise<() => Promise<void>> {
  if (kept !== undefined) return () => Promise.resolve()
  // upstream's tests of zones want three
  const cluster = await Cluster.up({ name: CLUSTER, nodes: isLong ? 3 : 2, progress: (text) => console.log(`e2e: ${text}`) })
  try {
    await installAgents(cluster)
    await cluster.nodesReady()
  } catch (thrown) {
    await cluster[Symbol.asyncDispose]()
    throw thrown
  }
  return async () => {
    await cluster[Symbol.asyncDispose]()
  }
}
