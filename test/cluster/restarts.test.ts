// SPDX-License-Identifier: Apache-2.0
/** A pod whose container dies stays where it is; one whose sandbox dies comes back, and nothing of the old one is
 * kept. Layer: test. */
import { expect, test } from 'vitest'
import { at, listAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { CTR } from '../../testkit/kubernetes/node.ts'
import { Namespace } from './namespaces.ts'
import { ask, HTTP_PORT, runPods, urlOf, type RunningPod } from './pods.ts'
import { sharedCluster } from './setup.ts'

const cluster = await sharedCluster()

async function kill(pod: RunningPod, container: string): Promise<void> {
  await cluster.lab.mustRun(`node/${pod.node}`, [...CTR, 'tasks', 'kill', '--signal', 'SIGKILL', container])
}

/** The container that holds the pod's namespaces. */
async function sandboxOf(pod: RunningPod): Promise<string> {
  const labels = [
    `"io.kubernetes.pod.namespace"==${pod.namespace}`,
    `"io.kubernetes.pod.name"==${pod.name}`,
    '"io.cri-containerd.kind"==sandbox',
  ]
  const filter = labels.map((label) => `labels.${label}`).join(',')
  return (await cluster.lab.mustRun(`node/${pod.node}`, [...CTR, 'containers', 'ls', '-q', filter])).trim()
}

/** The pod as it is once another container of it is ready. */
async function restarted(pod: RunningPod): Promise<RunningPod> {
  const found = await waitFor(
    async () => {
      const object = await cluster.get('pod', pod.name, '-n', pod.namespace)
      const [status] = listAt(object, 'status.containerStatuses')
      const container = (textAt(status, 'containerID') ?? '').replace('containerd://', '')
      if (container === pod.container || at(status, 'ready') !== true) return undefined
      return { ...pod, container, addresses: listAt(object, 'status.podIPs').flatMap((entry) => textAt(entry, 'ip') ?? []) }
    },
    { timeoutMs: 60_000, everyMs: 200 },
  )
  if (found === undefined) throw new Error(`${pod.name} did not come back`)
  return found
}

/** Addresses that pods of this namespace have in blocks. */
async function held(namespace: string): Promise<string[]> {
  const blocks = listAt(await cluster.get('ipamblocks'), 'items')
  const own = blocks.flatMap((block) => listAt(block, 'spec.allocations')).filter((one) => textAt(one, 'namespace') === namespace)
  return own.flatMap((one) => textAt(one, 'address') ?? [])
}

test('a pod comes back with its network when its container is killed, and then all of it', async () => {
  await using namespace = await Namespace.make(cluster, 'restarts')
  const [server, client] = await runPods(cluster, namespace.name, [
    { name: 'server', node: 'a', hostPort: 18081 },
    { name: 'client', node: 'b' },
  ])
  if (server === undefined || client === undefined) throw new Error('no pods')
  const answers = async (pod: RunningPod): Promise<void> => {
    for (const address of pod.addresses) expect(await ask(cluster, client, urlOf(address, HTTP_PORT))).toBe('server')
    expect(await ask(cluster, client, urlOf('172.31.0.11', 18081))).toBe('server')
    expect((await held(namespace.name)).toSorted()).toEqual([...pod.addresses, ...client.addresses].toSorted())
  }
  await kill(server, server.container)
  const second = await restarted(server)
  expect(second.addresses).toEqual(server.addresses)
  await answers(second)
  await kill(server, await sandboxOf(server))
  await answers(await restarted(second))
})
