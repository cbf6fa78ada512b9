// SPDX-License-Identifier: Apache-2.0
/** Builds Kubernetes' programs, unless they are in the cache directory already; brings a cluster of them up, asks it, takes it down. Layer: test. */
import { installAgents } from '../e2e/agents.ts'
import { Cluster } from './cluster.ts'
import { builtPrograms, kubernetesPrograms } from './programs.ts'

async function build(): Promise<number> {
  if (builtPrograms() === undefined) console.log('building Kubernetes: ten CPU minutes, once')
  const began = performance.now()
  const folder = await kubernetesPrograms()
  console.log(`Kubernetes: ${folder} (${((performance.now() - began) / 1000).toFixed(0)} s)`)
  return 0
}

async function up(): Promise<number> {
  const cluster = await Cluster.up({ progress: (text) => console.log(text) })
  await installAgents(cluster)
  await cluster.nodesReady()
  console.log(`KUBECONFIG=${cluster.plane.kubeconfig}, in namespace ${cluster.lab.topology.fabric.netns}`)
  return 0
}

async function kubectl(args: readonly string[]): Promise<number> {
  const { status, stdout, stderr } = await (await Cluster.open()).tryKubectl(args)
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  return status ?? 1
}

async function main([verb = 'build', ...args]: readonly string[]): Promise<number> {
  if (verb === 'build') return await build()
  if (verb === 'up') return await up()
  if (verb === 'kubectl') return await kubectl(args)
  if (verb !== 'down') throw new Error(`no such command: ${verb}; there are build, up, kubectl, down`)
  await Cluster.remove()
  return 0
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (thrown) {
  console.error(`test/kubernetes: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  process.exitCode = 1
}
