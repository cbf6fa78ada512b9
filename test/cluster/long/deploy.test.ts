// SPDX-License-Identifier: Apache-2.0
/** The daemon set on a cluster whose nodes have agents already. Layer: test. */
import { expect, test } from 'vitest'
import { startAgent, stopAgent } from '../../../testkit/kubernetes/agents.ts'
import { DAEMON_SET, importImage, install, OURS } from '../installed.ts'
import { Namespace } from '../namespaces.ts'
import { addressesOf, ask, HTTP_PORT, runPods, urlOf } from '../pods.ts'
import { sharedCluster } from '../setup.ts'

test(
  'nodes that have agents: the daemon set takes them over, and pods go on',
  async () => {
    const cluster = await sharedCluster()
    await importImage(cluster)
    await using namespace = await Namespace.make(cluster, 'deploy')
    const [before] = await runPods(cluster, namespace.name, [{ name: 'before', node: 'b' }])
    for (const node of cluster.nodes) await stopAgent(cluster, node, 'SIGTERM')
    try {
      await install(cluster)
      const [after] = await runPods(cluster, namespace.name, [{ name: 'after', node: 'a' }])
      for (const to of addressesOf(before)) expect(after && (await ask(cluster, after, urlOf(to, HTTP_PORT)))).toBe('before')
    } finally {
      const whole = ['--cascade=foreground', '--timeout=120s']
      await cluster.kubectl(['delete', DAEMON_SET, '-n', OURS, '--ignore-not-found', ...whole], { timeoutMs: 150_000 })
      for (const node of cluster.nodes) await startAgent(cluster, node)
    }
  },
  20 * 60_000,
)
