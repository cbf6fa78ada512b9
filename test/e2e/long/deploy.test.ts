// SPDX-License-Identifier: Apache-2.0
/** What an administrator applies: a daemon set of our own image takes the nodes over, and pods go on. Layer: test. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/package.ts'
import { mapLimit } from '../../../lab/command.ts'
import { command } from '../../kernel/vm/command.ts'
import { writeArchive } from '../../kubernetes/archive.ts'
import { Cluster } from '../../kubernetes/cluster.ts'
import { CTR } from '../../kubernetes/node.ts'
import { startAgent, stopAgent } from '../agents.ts'
import { Namespace } from '../namespaces.ts'
import { ask, HTTP_PORT, runPods, urlOf } from '../pods.ts'
import { CLUSTER } from '../setup.ts'

const OURS = 'netplane-system'
const DAEMON_SET = 'daemonset/netplane-agent'
/** As deploy/netplane.yaml names it, in full. */
const IMAGE = 'docker.io/library/netplane:0.1.0'

/** Into each node's containerd: there is no registry. */
async function importImage(cluster: Cluster): Promise<void> {
  const root = join(packageRoot(), 'build/image')
  await command('make', ['--no-print-directory', '-s', 'image'], { cwd: packageRoot(), timeout: 600_000 })
  const work = join(cluster.folder, 'image')
  const archive = `${work}.tar`
  await writeArchive(archive, work, [{ root, tags: [IMAGE], entrypoint: [], command: ['netplane-start'] }])
  await mapLimit(cluster.nodes, 1, (node) =>
    cluster.lab.mustRun(`node/${node}`, [...CTR, 'image', 'import', archive], { timeoutMs: 300_000 }),
  )
  rmSync(work, { recursive: true })
  rmSync(archive)
}

test(
  'kubectl apply -f deploy/',
  async () => {
    const cluster = await Cluster.open(CLUSTER)
    await importImage(cluster)
    await using namespace = await Namespace.make(cluster, 'deploy')
    const [before] = await runPods(cluster, namespace.name, [{ name: 'before', node: 'b' }])
    for (const node of cluster.nodes) await stopAgent(cluster, node, 'SIGTERM')
    try {
      await cluster.apply(cluster.endpointMap(OURS))
      await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-f', join(packageRoot(), 'deploy')])
      await cluster.kubectl(['rollout', 'status', DAEMON_SET, '-n', OURS, '--timeout=180s'], { timeoutMs: 200_000 })
      const [after] = await runPods(cluster, namespace.name, [{ name: 'after', node: 'a' }])
      for (const to of before?.addresses ?? []) expect(after && (await ask(cluster, after, urlOf(to, HTTP_PORT)))).toBe('before')
    } finally {
      await cluster.kubectl(['delete', DAEMON_SET, '-n', OURS, '--ignore-not-found', '--timeout=60s'], { timeoutMs: 90_000 })
      for (const node of cluster.nodes) await startAgent(cluster, node)
    }
  },
  20 * 60_000,
)
