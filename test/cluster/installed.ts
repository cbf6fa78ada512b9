// SPDX-License-Identifier: Apache-2.0
/** What an administrator does with deploy/, step by step as docs/install-manifests.md has it. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { imageArchive } from '../../testkit/base/image.ts'
import type { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { MANIFEST, NAME, NAMESPACE } from '../../testkit/kubernetes/manifest.ts'
import { CTR } from '../../testkit/kubernetes/node.ts'

const DEPLOY = join(packageRoot(), 'deploy')
export const OURS = NAMESPACE
export const DAEMON_SET = `daemonset/${NAME}`
/** For an administrator whose pods stay another plugin's. */
export const CHAINED = join(DEPLOY, 'manifests/netplane-chained.yaml')
/** For one who keeps kube-proxy as well. */
export const POLICY_ONLY = join(DEPLOY, 'manifests/netplane-policy-only.yaml')

/** Into each node's containerd: there is no registry. */
export async function importImage(cluster: Cluster): Promise<void> {
  const archive = await imageArchive()
  await mapLimited(cluster.nodes, 2, (node) =>
    cluster.lab.mustRun(`node/${node}`, [...CTR, 'image', 'import', archive], { timeoutMs: 300_000 }),
  )
}

/** As docs/install-manifests.md says. */
export async function install(cluster: Cluster, manifest = MANIFEST): Promise<void> {
  const { host, port } = cluster.endpoint
  const example = readFileSync(join(DEPLOY, 'examples/cluster-services-endpoint.yaml'), 'utf8')
  const map = example.replace('api.internal.example.com', host).replace("'6443'", `'${port}'`)
  await cluster.kubectl(['apply', '-f', '-'], { input: map })
  await cluster.kubectl(['apply', '-f', manifest])
  await rollout(cluster)
}

/** Throws with what the agents' pods say when they are not ready in time. */
export async function rollout(cluster: Cluster): Promise<void> {
  const { status, stderr } = await cluster.tryKubectl(['rollout', 'status', DAEMON_SET, '-n', OURS, '--timeout=180s'], {
    timeoutMs: 200_000,
  })
  if (status === 0) return
  const ours = ['-n', OURS, '-l', `app.kubernetes.io/name=${NAME}`]
  const pods = await cluster.tryKubectl(['describe', 'pods', ...ours])
  const logs = await cluster.tryKubectl(['logs', ...ours, '--all-containers', '--prefix', '--tail=20'])
  throw new Error([stderr, pods.stdout, logs.stdout, logs.stderr].join('\n'))
}

/** As docs/install-manifests.md says; then nothing of ours is on the nodes. */
export async function takeAway(cluster: Cluster): Promise<void> {
  const example = join(DEPLOY, 'manifests/cleanup.yaml')
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
