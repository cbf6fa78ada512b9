// SPDX-License-Identifier: Apache-2.0
/** Our agent on the nodes of a real cluster, as a process of each. Layer: testkit. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Cluster } from './cluster.ts'
import { isDefinition, isRight, listOf, manifest, NAME, NAMESPACE } from './manifest.ts'
import { programCommand } from '../base/program.ts'

const HEALTH_PORT = 9099
/** The kernel verifies programs again on each node, and nodes share the machine. */
const READY_MS = 120_000
/** A pod of the daemon set has half a minute to end. */
const GONE_MS = 90_000
/** curl exits with this status when the connection is refused. */
const NOBODY_LISTENS = 7

/** A cluster to an administrator. */
export type Administered = Pick<Cluster, 'plane' | 'folder' | 'kubectl'>

/** What an administrator applies, and an agent on each node that is ready. */
export async function installAgents(cluster: Cluster): Promise<void> {
  await agentKubeconfig(cluster)
  await cluster.apply(...cluster.addresses.podCidrs.map(poolOf))
  await mapLimited(cluster.nodes, 2, (node) => startAgent(cluster, node))
}

/** Resolves when it is ready. Throws with the end of its log when it ends, or is not ready in time, and where another
 * agent does not go: that one would answer in its place. */
export async function startAgent(cluster: Cluster, node: string): Promise<void> {
  const asked = async (): Promise<number | undefined> => {
    const { status } = await cluster.lab.run(`node/${node}`, [
      'curl',
      '-s',
      '--fail',
      '--max-time',
      '5',
      `http://127.0.0.1:${HEALTH_PORT}/readiness`,
    ])
    return status
  }
  const isFree = await waitFor(async () => (await asked()) === NOBODY_LISTENS || undefined, { timeoutMs: GONE_MS, everyMs: 200 })
  if (isFree !== true) throw new Error(`another agent runs on node ${node}, or curl fails with status ${await asked()}`)
  const command = programCommand('agent')
  const flags = [
    '--node',
    node,
    '--state-dir',
    '/run/netplane',
    '--kubeconfig',
    await nodeKubeconfig(cluster, node),
    '--cni-conf-dir',
    '/etc/cni/net.d',
  ]
  await cluster.daemons.start({ node }, [...command, ...flags], { name: NAME })
  const ready = await waitFor(
    async () => {
      if (cluster.daemons.pid({ node }, NAME) === undefined) return 'ended'
      return (await asked()) === 0 ? 'ready' : undefined
    },
    { timeoutMs: READY_MS, everyMs: 200 },
  )
  if (ready !== 'ready') throw new Error(`${ready ?? 'not ready in time'}: ${cluster.daemons.logEnd({ node }, NAME)}`)
}

/** False when none ran. */
export async function stopAgent(cluster: Cluster, node: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
  return await cluster.daemons.stop({ node }, NAME, signal)
}

/** Definitions and account as deploy/ has them, and a kubeconfig with a token of the account that the daemon set
 * has. */
export async function agentKubeconfig(cluster: Administered): Promise<string> {
  const path = join(cluster.folder, 'agent.kubeconfig')
  if (existsSync(path)) return path
  await applyDefinitions(cluster)
  await applyAccount(cluster)
  await writeKubeconfig(cluster, path)
  return path
}

/** As a pod of the daemon set has it: with a token that says of which node it is. */
async function nodeKubeconfig(cluster: Administered, node: string): Promise<string> {
  const path = join(cluster.folder, `agent-${node}.kubeconfig`)
  await cluster.kubectl(['wait', '--for=create', `node/${node}`, '--timeout=60s'])
  await writeKubeconfig(cluster, path, ['--bound-object-kind', 'Node', '--bound-object-name', node])
  return path
}

async function writeKubeconfig(cluster: Administered, path: string, bound: readonly string[] = []): Promise<void> {
  const token = await cluster.kubectl(['create', 'token', NAME, '-n', NAMESPACE, '--duration=24h', ...bound])
  cluster.plane.writeKubeconfig(path, { token: token.trim() }, true)
}

async function applyDefinitions(cluster: Administered): Promise<void> {
  await cluster.kubectl(['apply', '--server-side', '-f', '-'], { input: listOf(manifest().filter(isDefinition)) })
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
}

async function applyAccount(cluster: Administered): Promise<void> {
  await cluster.kubectl(['apply', '-f', '-'], { input: listOf(manifest().filter(isRight)) })
}

function poolOf(cidr: string): object {
  const metadata = { name: cidr.includes(':') ? 'pods-v6' : 'pods-v4' }
  return { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata, spec: { cidr, natOutgoing: true, vxlanMode: 'Always' } }
}
