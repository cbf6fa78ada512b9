// SPDX-License-Identifier: Apache-2.0
/** Two generations of container runtimes and of the plugin for hostPorts, in one cluster. Layer: test. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listAt, textAt } from '../../lab/raw.ts'
import { NEWER_NODE } from '../../testkit/kubernetes/cluster.ts'
import { startAgent, stopAgent } from '../../testkit/kubernetes/agents.ts'
import { Namespace } from './namespaces.ts'
import { askFrom, runPods, urlOf } from './pods.ts'
import { sharedCluster } from './setup.ts'

const cluster = await sharedCluster()
const OLDER_NODE = 'a'

/** The newest version by which a runtime that knows all may call the node's plugins. */
async function newestOn(node: string): Promise<unknown> {
  const text = await cluster.lab.mustRun(`node/${node}`, ['cat', '/etc/cni/net.d/10-netplane.conflist'])
  return listAt(JSON.parse(text), 'cniVersions').at(-1)
}

async function versionOf(node: string): Promise<string> {
  return textAt(await cluster.get('node', node), 'status.nodeInfo.containerRuntimeVersion') ?? ''
}

test('pods with host ports come by each of them, also when a newer runtime has an older portmap', async () => {
  expect([await versionOf(OLDER_NODE), await versionOf(NEWER_NODE)]).toEqual([
    expect.stringMatching(/^containerd:\/\/v?1\.6\./),
    expect.stringMatching(/^containerd:\/\/v?2\./),
  ])
  expect([await newestOn(OLDER_NODE), await newestOn(NEWER_NODE)]).toEqual(['1.0.0', '1.1.0'])
  await using namespace = await Namespace.make(cluster, 'runtimes')
  const [address] = listAt(await cluster.get('node', NEWER_NODE), 'status.addresses').flatMap((entry) => textAt(entry, 'address') ?? [])
  const answers = (port: number): Promise<string | undefined> => askFrom(cluster, 'client', urlOf(address ?? '', port))
  await runPods(cluster, namespace.name, [{ name: 'newer', node: NEWER_NODE, hostPort: 18081 }])
  expect(await answers(18081)).toBe('newer')
  const portmap = async (from: string): Promise<void> => {
    // another file, as packages put it there
    const script = 'cp "$1" /opt/cni/bin/.portmap; mv /opt/cni/bin/.portmap /opt/cni/bin/portmap'
    await cluster.lab.mustRun(`node/${NEWER_NODE}`, ['sh', '-euc', script, 'sh', from])
  }
  try {
    await portmap('/usr/lib/cni/portmap')
    await expect.poll(() => newestOn(NEWER_NODE)).toBe('1.0.0')
    await runPods(cluster, namespace.name, [{ name: 'older', node: NEWER_NODE, hostPort: 18082 }])
    expect([await answers(18081), await answers(18082)]).toEqual(['newer', 'older'])
  } finally {
    await portmap(join(cluster.runtime, 'portmap'))
  }
  await expect.poll(() => newestOn(NEWER_NODE)).toBe('1.1.0')
})

test('the newer runtime asks how the node is, and hears why no agent can serve pods', async () => {
  const readiness = async (): Promise<unknown> =>
    listAt(await cluster.get('node', NEWER_NODE), 'status.conditions').find((condition) => textAt(condition, 'type') === 'Ready')
  await stopAgent(cluster, NEWER_NODE, 'SIGKILL')
  try {
    // as after a boot
    await cluster.lab.mustRun(`node/${NEWER_NODE}`, ['rm', '/run/netplane/cni.sock.ready'])
    const message = expect.stringMatching(/Network plugin returns error: .*does not listen/) as unknown
    await expect.poll(readiness, { timeout: 30_000, interval: 500 }).toMatchObject({ status: 'False', message })
  } finally {
    await startAgent(cluster, NEWER_NODE)
  }
  await cluster.nodesReady()
})
