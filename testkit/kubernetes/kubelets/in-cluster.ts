// SPDX-License-Identifier: Apache-2.0
/** Nodes without machines beside the real ones of a cluster. Layer: testkit. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'
import type { Cluster } from '../cluster.ts'
import { NOT_READY, TEST_NODES } from './joining.ts'

const KUBELETS = 'kubelets'

/** Pods that come to them are Ready, and nothing runs. They end with the cluster. May be done again for others. */
export async function addTestNodes(cluster: Cluster, names: readonly string[]): Promise<void> {
  await addTestNodesAt(cluster, Object.fromEntries(names.map((name) => [name, ''])))
  const nodes = names.map((name) => `node/${name}`)
  // of several it does not wait for those to come that are not there
  for (const node of nodes) await cluster.kubectl(['wait', '--for=create', node, '--timeout=30s'])
  await cluster.kubectl(['wait', '--for=condition=Ready', ...nodes, '--timeout=30s'])
}

/** Each joins as soon as a condition of a NetplaneStatus has its text. */
export async function addTestNodesAt(cluster: Cluster, moments: Readonly<Record<string, string>>): Promise<void> {
  await put(cluster, moments)
}

/** Its kubelet says that it is not ready, until it is woken. */
export async function holdTestNode(cluster: Cluster, node: string): Promise<void> {
  await put(cluster, { [node]: NOT_READY })
}

export async function wakeTestNode(cluster: Cluster, node: string): Promise<void> {
  await put(cluster, { [node]: '' })
}

/** What became of these nodes since they joined, in its order: "joins", "Standard", "BPF"; "unserved" where neither we
 * nor kube-proxy served one. */
export function livesOf(cluster: Cluster, nodes: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const lines = readFileSync(cluster.daemons.log('fabric', KUBELETS), 'utf8').split('\n')
  const lifeOf = (node: string): readonly string[] =>
    lines.flatMap((line) => (line.startsWith(`${node} `) ? line.slice(node.length + 1) : []))
  return Object.fromEntries(nodes.map((node) => [node, lifeOf(node)]))
}

async function put(cluster: Cluster, data: Readonly<Record<string, string>>): Promise<void> {
  const command = nodeCommand(join(packageRoot(), 'testkit/kubernetes/tools/kubelets.ts'))
  await cluster.daemons.start('fabric', [...command, '--kubeconfig', cluster.plane.kubeconfig], { name: KUBELETS })
  const named = ['configmap', TEST_NODES.name, '-n', TEST_NODES.namespace]
  await cluster.tryKubectl(['create', ...named])
  await cluster.kubectl(['patch', ...named, '--type=merge', '-p', JSON.stringify({ data })])
}
