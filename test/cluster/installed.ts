// SPDX-License-Identifier: Apache-2.0
/** What an administrator does with deploy/, step by step as docs/install.md has it. Layer: test. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { mapLimit } from '../../lab/processes/command.ts'
import { command } from '../../testkit/base/command.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { CTR } from '../../testkit/kubernetes/node.ts'

const DEPLOY = join(packageRoot(), 'deploy')
export const OURS = 'netplane-system'
export const DAEMON_SET = 'daemonset/netplane-agent'

/** Into each node's containerd: there is no registry. */
export async function importImage(cluster: Cluster): Promise<void> {
  await command('make', ['--no-print-directory', '-s', 'image'], { cwd: packageRoot(), timeout: 600_000 })
  const archive = join(packageRoot(), 'build/netplane.tar')
  await mapLimit(cluster.nodes, 1, (node) =>
    cluster.lab.mustRun(`node/${node}`, [...CTR, 'image', 'import', archive], { timeoutMs: 300_000 }),
  )
}

/** deploy/ of an administrator whose pods stay another plugin's: with the line that is there for that. */
export function chainedManifests(cluster: Cluster): string {
  const folder = join(cluster.folder, 'deploy')
  mkdirSync(folder)
  for (const name of readdirSync(DEPLOY).filter((file) => file.endsWith('.yaml'))) {
    const text = readFileSync(join(DEPLOY, name), 'utf8')
    writeFileSync(join(folder, name), text.replace(/^( *)# (- --cni-chained)$/m, '$1$2'))
  }
  return folder
}

/** As docs/install.md says. */
export async function install(cluster: Cluster, folder = DEPLOY): Promise<void> {
  const { host, port } = cluster.endpoint
  const example = readFileSync(join(DEPLOY, 'examples/cluster-services-endpoint.yaml'), 'utf8')
  const map = example.replace('api.internal.example.com', host).replace("'6443'", `'${port}'`)
  for (const input of [map, map.replaceAll('netplane-operator', OURS)]) await cluster.kubectl(['apply', '-f', '-'], { input })
  await cluster.kubectl(['apply', '-f', folder])
  await rollout(cluster)
}

export async function rollout(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['rollout', 'status', DAEMON_SET, '-n', OURS, '--timeout=180s'], { timeoutMs: 200_000 })
}

/** As docs/install.md says; then nothing of ours is on the nodes. */
export async function takeAway(cluster: Cluster): Promise<void> {
  const example = join(DEPLOY, 'examples/cleanup.yaml')
  await cluster.kubectl(['delete', DAEMON_SET, '-n', OURS])
  await cluster.kubectl(['apply', '-f', example])
  await cluster.kubectl(['rollout', 'status', 'daemonset/netplane-cleanup', '-n', OURS, '--timeout=120s'], { timeoutMs: 150_000 })
  const said = await cluster.kubectl(['logs', '-n', OURS, '-l', 'app.kubernetes.io/name=netplane-cleanup', '-c', 'cleanup', '--prefix'])
  for (const node of cluster.nodes) {
    const left =
      'ls -d /sys/fs/bpf/netplane /etc/cni/net.d/*netplane* /opt/cni/bin/netplane* 2>/dev/null; grep /run/netplane/cgroup /proc/mounts'
    expect(await cluster.lab.mustRun(`node/${node}`, ['sh', '-c', `${left}; true`]), said).toBe('')
  }
  await cluster.kubectl(['delete', '-f', example])
}
