// SPDX-License-Identifier: Apache-2.0
/** What an administrator applies: a daemon set of our own image on an empty cluster, and on one whose nodes have agents. Layer: test. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorText } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/package.ts'
import { mapLimit } from '../../../lab/command.ts'
import { listAt } from '../../../lab/raw.ts'
import { command } from '../../kernel/vm/command.ts'
import { writeArchive } from '../../kubernetes/archive.ts'
import { Cluster } from '../../kubernetes/cluster.ts'
import { CTR } from '../../kubernetes/node.ts'
import { startAgent, stopAgent } from '../agents.ts'
import { Asking } from '../asking.ts'
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

/** As docs/install.md says. */
async function install(cluster: Cluster, ...more: readonly string[]): Promise<void> {
  const { host, port } = cluster.endpoint
  const example = readFileSync(join(packageRoot(), 'deploy/examples/cluster-services-endpoint.yaml'), 'utf8')
  const map = example.replace('api.internal.example.com', host).replace("'6443'", `'${port}'`)
  for (const input of [map, map.replaceAll('netplane-operator', OURS)]) await cluster.kubectl(['apply', '-f', '-'], { input })
  await cluster.kubectl(['apply', '--server-side', '-f', join(packageRoot(), 'deploy'), ...more])
  await rollout(cluster)
}

async function rollout(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['rollout', 'status', DAEMON_SET, '-n', OURS, '--timeout=180s'], { timeoutMs: 200_000 })
}

test(
  'an empty cluster: nodes are Ready, pods have addresses, services and policy work, and a rollout interrupts nobody',
  async () => {
    await using cluster = await Cluster.up({ name: 'empty' })
    await importImage(cluster)
    const whyNot = (): Promise<string> => cluster.nodesReady(0).then(() => '', errorText)
    await expect.poll(whyNot, { timeout: 30_000 }).toContain('cni plugin not initialized')
    await install(cluster)
    await cluster.nodesReady()
    await using namespace = await Namespace.make(cluster, 'first')
    const { name } = namespace
    const [server, client] = await runPods(cluster, name, [
      { name: 'server', node: 'a', labels: { app: 'web' } },
      { name: 'client', node: 'b' },
    ])
    if (server === undefined || client === undefined) throw new Error('no pods')
    const spec = { ipFamilyPolicy: 'RequireDualStack', selector: { app: 'web' }, ports: [{ port: 80, targetPort: HTTP_PORT }] }
    await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: name, name: 'web' }, spec })
    const addresses = listAt(await cluster.get('service', 'web', '-n', name), 'spec.clusterIPs').map(String)
    expect([server.addresses.length, addresses.length]).toEqual([2, 2])
    const urls = addresses.map((address) => urlOf(address, 80))
    const answers = (): Promise<(string | undefined)[]> => Promise.all(urls.map((url) => ask(cluster, client, url)))
    await expect.poll(answers, { timeout: 20_000 }).toEqual(['server', 'server'])
    {
      await using asking = new Asking(cluster, 'node/b', urls[0] ?? '')
      await asking.more(20)
      await cluster.kubectl(['rollout', 'restart', DAEMON_SET, '-n', OURS])
      await rollout(cluster)
      await asking.more(20)
      expect(asking.lost).toBe(0)
    }
    const closed = { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] }
    await cluster.apply({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
      ...{ metadata: { namespace: name, name: 'closed' }, spec: closed },
    })
    await expect.poll(answers, { timeout: 20_000 }).toEqual([undefined, undefined])
  },
  20 * 60_000,
)

test(
  'nodes that have agents: the daemon set takes them over, and pods go on',
  async () => {
    const cluster = await Cluster.open(CLUSTER)
    await importImage(cluster)
    await using namespace = await Namespace.make(cluster, 'deploy')
    const [before] = await runPods(cluster, namespace.name, [{ name: 'before', node: 'b' }])
    for (const node of cluster.nodes) await stopAgent(cluster, node, 'SIGTERM')
    try {
      // the account was made in another way
      await install(cluster, '--force-conflicts')
      const [after] = await runPods(cluster, namespace.name, [{ name: 'after', node: 'a' }])
      for (const to of before?.addresses ?? []) expect(after && (await ask(cluster, after, urlOf(to, HTTP_PORT)))).toBe('before')
    } finally {
      await cluster.kubectl(['delete', DAEMON_SET, '-n', OURS, '--ignore-not-found', '--timeout=60s'], { timeoutMs: 90_000 })
      for (const node of cluster.nodes) await startAgent(cluster, node)
    }
  },
  20 * 60_000,
)
