// SPDX-License-Identifier: Apache-2.0
/** What an operator has come to on a real cluster: pods that reach each other, or nothing of ours. Layer: test. */
import { expect } from 'vitest'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { ask, HTTP_PORT, podsOf, urlOf, type RunningPod } from '../pods.ts'
import { madeNames } from './installed.ts'
import { nodeStates } from './node-state.ts'
import { ECHO_PORT, nodeAddresses, served, service, workload } from './traffic.ts'

const APP = 'web'

/** A pod on each node, and their service. */
export async function makePods(cluster: Cluster, namespace: string): Promise<readonly RunningPod[]> {
  await cluster.apply(
    workload({ kind: 'DaemonSet', namespace, app: APP }),
    service(namespace, APP, [
      { name: 'http', port: 80, targetPort: HTTP_PORT },
      { name: 'echo', port: ECHO_PORT },
    ]),
  )
  const pods = await podsOf(cluster, namespace, { app: APP, count: 2 })
  expect(pods.map(({ node }) => node).sort()).toEqual(['a', 'b'])
  return pods
}

/** The pods of {@link makePods} reach each other, and themselves by their service. */
export async function allReached(cluster: Cluster, namespace: string, pods: readonly RunningPod[]): Promise<void> {
  const { addresses, nodePort } = await served(cluster, { namespace, app: APP, port: 'http' })
  const urls = [...addresses.map((address) => urlOf(address, 80)), ...nodeAddresses(cluster).map((address) => urlOf(address, nodePort))]
  for (const pod of pods)
    for (const other of pods) {
      for (const address of other.addresses) await expect.poll(() => ask(cluster, pod, urlOf(address, HTTP_PORT))).toBe(other.name)
      for (const url of urls) await expect.poll(() => ask(cluster, pod, url)).toBeOneOf(pods.map(({ name }) => name))
    }
}

/** The Installation has gone: nodes are as they were before it, and of ours is there what stays. */
export async function goneAndClean(cluster: Cluster, before: Readonly<Record<string, readonly string[]>>): Promise<void> {
  expect(await nodeStates(cluster)).toEqual(before)
  expect(await madeNames(cluster)).toEqual(['Namespace netplane-system'])
  await expect.poll(() => cluster.kubectl(['get', 'netplanestatus'])).toBe('')
}

/** "3.2 s", from a time of performance.now() */
export function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
