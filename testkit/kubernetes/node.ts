// SPDX-License-Identifier: Apache-2.0
/** A lab's node with containerd and kubelet: a node of a real cluster. Layer: testkit. */
import { globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeCgroup } from '../../lab/processes/cgroup.ts'
import type { Lab } from '../../lab/lab.ts'
import { nodeNamed } from '../../lab/network/topology.ts'
import { waitFor } from '../../lab/wait.ts'
import { UnsupportedError } from '#lib/base/errors.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { cgroupObstacle } from './cgroups.ts'
import type { Daemons } from './daemons.ts'
import { GO_ENV } from './flags.ts'
import { CONTROLLERS, containerdConfig, kubeletConfig, nodeSetupScript, type NodeSetup } from './node-setup.ts'

export interface NodeOptions {
  readonly lab: Lab
  readonly daemons: Daemons
  readonly programs: string
  /** folder of a containerd to run instead of Debian's */
  readonly runtime: string | undefined
  /** tar files to import */
  readonly images: readonly string[]
  readonly name: string
  /** for its state; not below another overlay */
  readonly folder: string
  readonly kubeconfig: string
  readonly authority: string
  readonly clusterDns: readonly string[]
  /** names that it knows by itself */
  readonly hosts: Readonly<Record<string, string>>
}

/** Brings up containerd and kubelet; the node registers itself and is Ready once it has a network. */
export async function startNode(options: NodeOptions): Promise<void> {
  const setup = setupOf(options)
  const obstacle = cgroupObstacle()
  if (obstacle !== undefined) throw new UnsupportedError('a real cluster', obstacle)
  mkdirSync(setup.folder, { recursive: true })
  await options.lab.mustRun(`node/${options.name}`, ['sh', '-euc', nodeSetupScript(setup)])
  await startContainerd(options)
  for (const image of options.images)
    await options.lab.mustRun(`node/${options.name}`, [...CTR, 'image', 'import', image], { timeoutMs: 300_000 })
  await startKubelet(options)
}

export async function startKubelet(options: NodeOptions): Promise<void> {
  const setup = setupOf(options)
  const config = join(setup.folder, 'kubelet.json')
  writeFileSync(config, kubeletConfig({ ...setup, clusterDns: options.clusterDns, authority: options.authority }))
  await options.daemons.start(
    { node: options.name },
    [
      ...[join(options.programs, 'kubelet'), `--kubeconfig=${options.kubeconfig}`, `--config=${config}`],
      ...[`--hostname-override=${options.name}`, `--node-ip=${setup.addresses.join(',')}`, `--root-dir=${join(setup.folder, 'kubelet')}`],
      // each is a zone of its own
      ...[`--node-labels=topology.kubernetes.io/zone=zone-${options.name}`, '--v=2'],
    ],
    { name: 'kubelet', env: GO_ENV },
  )
}

/** Removes the v1 cgroups of a node that has ended: the lab knows of its cgroup2 only. A kubelet that finds them
 * takes long to start. */
export async function removeNodeCgroups(lab: string, node: string): Promise<void> {
  // a node's hierarchy begins where that process was which started it, anywhere on the machine
  const left = globSync(`/sys/fs/cgroup/{${CONTROLLERS.join(',')}}/**${cgroupOf(lab, node)}`)
  const stuck = await mapLimited(left, 1, async (dir) => ((await removeCgroup(dir)) ? [] : [dir]))
  if (stuck.flat().length > 0) throw new Error(`node ${node}: cgroups still in use: ${stuck.flat().join(', ')}`)
}

/** containerd's own client, and where kubelet's containers are. */
export const CTR = ['ctr', '-a', '/run/containerd/containerd.sock', '-n', 'k8s.io'] as const

async function startContainerd(options: NodeOptions): Promise<void> {
  const { daemons, lab, name, runtime } = options
  const config = join(options.folder, 'containerd.toml')
  writeFileSync(config, containerdConfig(options.folder))
  // it looks for its shim there as well
  const path = [...(runtime === undefined ? [] : [runtime]), process.env['PATH'] ?? ''].join(':')
  const command = ['env', `PATH=${path}`, 'containerd', '-c', config]
  await daemons.start({ node: name }, command, { name: 'containerd', env: GO_ENV })
  const answers = await waitFor(async () => ((await lab.run(`node/${name}`, [...CTR, 'version'])).status === 0 ? true : undefined), {
    timeoutMs: 60_000,
    everyMs: 100,
  })
  if (answers !== true) throw new Error(`no answer: ${daemons.logEnd({ node: name }, 'containerd')}`)
}

function setupOf(options: NodeOptions): NodeSetup {
  const node = nodeNamed(options.lab.topology, options.name)
  return {
    node: options.name,
    folder: options.folder,
    cgroup: cgroupOf(options.lab.name, options.name),
    addresses: node.addresses.map((address) => address.split('/')[0] ?? ''),
    hosts: options.hosts,
    plugins: options.runtime === undefined ? [] : [join(options.runtime, 'portmap')],
  }
}

function cgroupOf(lab: string, node: string): string {
  return `/netplane-${lab}-${node}`
}
