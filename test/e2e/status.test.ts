// SPDX-License-Identifier: Apache-2.0
/** What kubectl shows of nodes and pods of a real cluster: what agents write stays beside what kubelets write. Layer: test. */
import { expect, test } from 'vitest'
import { listAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { Cluster } from '../kubernetes/cluster.ts'
import { Namespace } from './namespaces.ts'
import { runPods } from './pods.ts'
import { CLUSTER } from './setup.ts'

const cluster = await Cluster.open(CLUSTER)
const PROGRAMMED = 'netplane.io/Programmed'

function statusOf(object: unknown, type: string): string | undefined {
  const found = listAt(object, 'status.conditions').find((one) => textAt(one, 'type') === type)
  return found === undefined ? undefined : textAt(found, 'status')
}

test('nodes have a network, and are Ready', async () => {
  for (const node of cluster.nodes) {
    const object = await cluster.get('node', node)
    expect([node, statusOf(object, 'NetworkUnavailable'), statusOf(object, 'Ready')]).toEqual([node, 'False', 'True'])
  }
})

test('a pod that waits for being programmed gets Ready, and both conditions stay', async () => {
  await using namespace = await Namespace.make(cluster, 'status')
  const pods = [
    { name: 'near', node: 'a', gates: [PROGRAMMED] },
    { name: 'far', node: 'b', gates: [PROGRAMMED] },
  ]
  await runPods(cluster, namespace.name, pods)
  for (const { name } of pods) {
    // the kubelet has written Ready because of ours, and so after it
    const object = await cluster.get('pod', name, '-n', namespace.name)
    expect([name, statusOf(object, PROGRAMMED), statusOf(object, 'Ready')]).toEqual([name, 'True', 'True'])
  }
})

test('a refused policy is described by its own object, by one event for all nodes', async () => {
  const policy = {
    apiVersion: 'netplane.io/v3',
    kind: 'GlobalNetworkPolicy',
    metadata: { name: 'bad' },
    spec: { selector: "app ==== 'web'", ingress: [{ action: 'Allow' }] },
  }
  await cluster.apply(policy)
  const events = async (): Promise<readonly unknown[]> =>
    listAt(await cluster.get('events', '-n', 'default', '--field-selector', 'reason=Refused'), 'items')
  const said = async (): Promise<readonly unknown[] | undefined> => {
    const all = await events()
    return all.length > 0 ? all : undefined
  }
  expect((await waitFor(said, { timeoutMs: 60_000, everyMs: 500 }))?.map((event) => textAt(event, 'message'))).toEqual([
    expect.stringMatching(/^spec\.selector: not a selector/),
  ])
  expect(await cluster.kubectl(['describe', 'globalnetworkpolicies.netplane.io', 'bad'])).toMatch(/Warning +Refused/)
  await cluster.kubectl(['delete', 'globalnetworkpolicies.netplane.io', 'bad'])
})
