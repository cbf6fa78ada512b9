// SPDX-License-Identifier: Apache-2.0
/** Builds the programs of Kubernetes and Helm, unless they are in the cache directory already; brings a cluster up,
 * asks it, takes it down. Layer: testkit. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { nodeCommand } from '#lib/base/os/package.ts'
import { inOwnNamespaces } from '../base/namespaces.ts'
import { installAgents } from './agents.ts'
import { Cluster } from './cluster.ts'
import { helmPrograms } from './build/helm.ts'
import { builtPrograms, kubernetesPrograms, upstreamTests } from './build/programs.ts'
import { newestVersion } from './build/sources.ts'
import { listUpstream, runUpstream } from './upstream.ts'

/** The longest, a rolling update of LoadBalancers, takes 16 minutes: each of 15 pods has a minute to go. */
const SPEC_MS = 20 * 60_000

const EMPTY = '--empty'

async function build(): Promise<number> {
  if (builtPrograms() === undefined) console.log('building Kubernetes: ten CPU minutes, once')
  const began = performance.now()
  const folder = await kubernetesPrograms()
  // tests that need it have no network
  await helmPrograms()
  const isRoot = process.getuid?.() === 0
  if (isRoot && !startsFirst()) throw new Error('an API server does not start')
  console.log(`Kubernetes: ${folder} (${((performance.now() - began) / 1000).toFixed(0)} s)`)
  return 0
}

/** Tests that start an API server at once would each start it for the first time. */
function startsFirst(): boolean {
  const [program = '', ...args] = [...inOwnNamespaces, ...nodeCommand(join(import.meta.dirname, 'tools/first-start.ts'))]
  return spawnSync(program, args, { stdio: 'inherit' }).status === 0
}

/** `--empty`: without agents, so nodes are not Ready. */
async function up(args: readonly string[]): Promise<number> {
  const [nodes] = args.filter((arg) => arg !== EMPTY)
  const count = nodes === undefined ? {} : { nodes: Number(nodes) }
  const cluster = await Cluster.up({ ...count, progress: (text) => console.log(text) })
  if (!args.includes(EMPTY)) {
    await installAgents(cluster)
    await cluster.nodesReady()
  }
  console.log(`KUBECONFIG=${cluster.plane.kubeconfig}, in namespace ${cluster.lab.topology.fabric.netns}`)
  return 0
}

async function kubectl(args: readonly string[]): Promise<number> {
  const { status, stdout, stderr } = await (await Cluster.open()).tryKubectl(args)
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  return status ?? 1
}

/** Specs whose names match, so many at a time. */
async function upstream([pattern = '', lanes = '2']: readonly string[]): Promise<number> {
  const cluster = await Cluster.open()
  const program = await upstreamTests()
  const names = (await listUpstream(cluster, program)).filter((name) => new RegExp(pattern).test(name))
  await using stack = new AsyncDisposableStack()
  stack.use(await cluster.balance())
  const outcomes = await runUpstream(cluster, program, { names, lanes: Number(lanes), timeoutMs: names.length * SPEC_MS })
  for (const { state, seconds, name, message } of outcomes)
    console.log(`${state} ${seconds.toFixed(0)} s ${name}${message === '' ? '' : `: ${message.slice(0, 2000)}`}`)
  return outcomes.some(({ state }) => state === 'failed') ? 1 : 0
}

async function newest(): Promise<number> {
  console.log(await newestVersion())
  return 0
}

async function main([verb = 'build', ...args]: readonly string[]): Promise<number> {
  if (verb === 'build') return await build()
  if (verb === 'newest') return await newest()
  if (verb === 'up') return await up(args)
  if (verb === 'kubectl') return await kubectl(args)
  if (verb === 'upstream') return await upstream(args)
  if (verb !== 'down') throw new Error(`no such command: ${verb}; there are build, newest, up, kubectl, upstream, down`)
  await Cluster.remove()
  return 0
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (thrown) {
  console.error(`testkit/kubernetes: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  process.exitCode = 1
}
