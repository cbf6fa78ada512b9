// SPDX-License-Identifier: Apache-2.0
/** A real cluster on this machine: a control plane, and nodes of a lab with kubelet and containerd. Layer: testkit. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'
import { killCgroup, labCgroup, removeCgroup } from '../../lab/processes/cgroup.ts'
import { mustRun, type CommandOptions, type Outcome } from '../../lab/processes/command.ts'
import { Lab } from '../../lab/lab.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { removeNetns } from '../../lab/network/netns.ts'
import { nodeNamed } from '../../lab/network/topology.ts'
import { waitFor } from '../../lab/wait.ts'
import { CommandError } from '#lib/base/errors.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { clusterAddresses, familiesOf, isV6, NODES, type ClusterAddresses, type Families } from './cluster-addresses.ts'
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts'
import { Daemons } from './daemons.ts'
import { PORT } from './flags.ts'
import { kubelet } from './identities.ts'
import { testImages } from './build/images.ts'
import { newerRuntime } from './build/newer-runtime.ts'
import { removeNodeCgroups, startNode, type NodeOptions } from './node.ts'
import { hostsScript } from './node-setup.ts'
import { kubernetesPrograms } from './build/programs.ts'

/** The API server's name for nodes. */
const SERVER_NAME = 'server.cluster.test'
const USUAL_NODES = 2
/** has containerd 2, the others Debian's 1.6 */
export const NEWER_NODE = 'b'

export interface ClusterOptions {
  /** of its lab; default "cluster" */
  readonly name?: string
  /** how many; default and least 2, at most 3 */
  readonly nodes?: number
  /** that all of it has; default "both" */
  readonly families?: Families
  /** called with what is being done, for people to read */
  readonly progress?: (text: string) => void
}

export class Cluster implements AsyncDisposable {
  readonly lab: Lab
  readonly plane: ControlPlane
  readonly daemons: Daemons
  readonly programs: string
  readonly runtime: string
  readonly #folder: string
  readonly #images: string

  private constructor(parts: { readonly lab: Lab; readonly plane: ControlPlane } & Built) {
    this.lab = parts.lab
    this.plane = parts.plane
    this.programs = parts.programs
    this.runtime = parts.runtime
    this.#images = parts.images
    this.#folder = folderOf(parts.lab.name)
    this.daemons = new Daemons(parts.lab, join(this.#folder, 'logs'))
  }

  /** A new one, in place of what an earlier one of this name has left. Its nodes have no network yet: that is for
   * the caller. */
  static async up(options: ClusterOptions = {}): Promise<Cluster> {
    const name = options.name ?? 'cluster'
    const say = options.progress ?? (() => undefined)
    const built = await build()
    await Cluster.remove(name)
    try {
      const cluster = await Cluster.#build({ ...options, name, ...built })
      say('control plane')
      await mapLimited(cluster.nodes, 2, (node) => startNode(cluster.nodeOptions(node)))
      say('nodes')
      await cluster.#startDns()
      await cluster.#routeFabric()
      return cluster
    } catch (thrown) {
      await Cluster.remove(name)
      throw thrown
    }
  }

  /** One that is there. Throws LabError when there is none of this name. */
  static async open(name = 'cluster'): Promise<Cluster> {
    const built = await build()
    const lab = Lab.open(name)
    return new Cluster({ lab, plane: ControlPlane.attach(planeOptions(lab, built.programs)), ...built })
  }

  /** Safe at any time and after any crash: ends what the lab has started, in its namespaces and cgroups, and nothing
   * else. */
  static async remove(name = 'cluster'): Promise<void> {
    const left = await Lab.remove(name)
    if (left.some(({ kind }) => kind !== 'netns'))
      throw new Error(`cluster ${name}: ${left.map(({ what, why }) => `${what}: ${why}`).join('; ')}`)
    for (const node of NODES) await removeNodeCgroups(name, node)
    rmSync(folderOf(name), { recursive: true, force: true })
  }

  get nodes(): string[] {
    return this.lab.topology.nodes.map((node) => node.name)
  }

  /** For files of the caller. */
  get folder(): string {
    return this.#folder
  }

  get addresses(): ClusterAddresses {
    return addressesOf(this.lab)
  }

  nodeOptions(node: string): NodeOptions {
    return {
      lab: this.lab,
      daemons: this.daemons,
      programs: this.programs,
      runtime: node === NEWER_NODE ? this.runtime : undefined,
      images: [this.#images],
      name: node,
      folder: join(this.#folder, `node-${node}`),
      kubeconfig: this.plane.kubeconfigOf(kubelet(node)),
      authority: this.plane.authority,
      clusterDns: [this.addresses.dns],
      hosts: this.#hosts(),
    }
  }

  /** As an administrator. */
  async tryKubectl(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
    const command = [
      join(this.programs, 'kubectl'),
      `--kubeconfig=${this.plane.kubeconfig}`,
      '--cache-dir',
      join(this.#folder, 'kubectl'),
      ...args,
    ]
    return await this.lab.run('fabric', command, options)
  }

  /** Its standard output; throws CommandError when it fails. */
  async kubectl(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    const { status, stdout, stderr } = await this.tryKubectl(args, options)
    if (status !== 0) throw new CommandError({ command: `kubectl ${args.join(' ')}`, status, stderr })
    return stdout
  }

  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects }
    await this.kubectl(['apply', '-f', '-'], { input: JSON.stringify(list) })
  }

  /** An object or a list, parsed. */
  async get(...args: readonly string[]): Promise<unknown> {
    return JSON.parse(await this.kubectl(['get', ...args, '-o', 'json']))
  }

  /** Throws with each node's own reason, and the end of its kubelet's log, when not all are Ready in time. */
  async nodesReady(timeoutMs = 60_000): Promise<void> {
    let unready: Unready[] = []
    const ready = await waitFor(
      async () => {
        unready = listAt(await this.get('nodes'), 'items').flatMap(unreadyNode)
        return unready.length === 0 ? true : undefined
      },
      { timeoutMs, everyMs: 500 },
    )
    if (ready !== true)
      throw new Error(unready.map(({ node, reason }) => `node ${node}: ${reason}; ${this.daemons.logEnd({ node }, 'kubelet')}`).join('\n'))
  }

  /** The API server gets its other address, and nodes get its name's new entry; no server answers at the old one. */
  async moveServer(): Promise<void> {
    await this.plane.leaveAddress(this.addresses.servers.find((address) => address !== this.plane.address) ?? '')
    for (const node of this.nodes) await this.lab.mustRun(`node/${node}`, ['sh', '-euc', hostsScript(this.#hosts())])
    await this.plane.startServer()
  }

  /** All of the node ends at once: its programs, its pods, its kernel's state. What is on its disk stays. */
  async cutPower(node: string): Promise<void> {
    const cgroup = join(labCgroup(this.lab.name), node)
    await killCgroup(cgroup)
    await removeCgroup(cgroup)
    await removeNetns(mustRun, [nodeNamed(this.lab.topology, node).netns])
    await removeNodeCgroups(this.lab.name, node)
  }

  /** After {@link cutPower}: containerd and kubelet run again. */
  async boot(node: string): Promise<void> {
    await this.lab.sync()
    await startNode({ ...this.nodeOptions(node), images: [] })
  }

  /** Where the API server is without any service. */
  get endpoint(): { readonly host: string; readonly port: number } {
    return { host: SERVER_NAME, port: PORT }
  }

  /** Services that want a load balancer have one of IPv4, as in a cloud, until it is disposed of. */
  async balance(): Promise<AsyncDisposable> {
    const command = nodeCommand(join(packageRoot(), 'testkit/kubernetes/tools/balancer.ts'))
    const nodes = this.nodes.flatMap((node) => ['--node', this.addresses.nodes[node]?.[0] ?? ''])
    await this.daemons.start('fabric', [...command, '--kubeconfig', this.plane.kubeconfig, ...nodes], { name: 'balancer' })
    return {
      [Symbol.asyncDispose]: async () => {
        await this.daemons.stop('fabric', 'balancer', 'SIGTERM')
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Cluster.remove(this.lab.name)
  }

  static async #build(parts: ClusterOptions & Built & { readonly name: string }) {
    const { name, nodes = USUAL_NODES, families = 'both' } = parts
    const folder = folderOf(name)
    const resources = join(folder, 'nodes')
    mkdirSync(resources, { recursive: true })
    for (const [node, addresses] of Object.entries(clusterAddresses(families).nodes).slice(0, nodes))
      writeFileSync(join(resources, `${node}.json`), JSON.stringify(nodeManifest(node, addresses)))
    const lab = await Lab.up({ name, resources, agents: false, servers: false })
    return new Cluster({ ...parts, lab, plane: await ControlPlane.start(planeOptions(lab, parts.programs)) })
  }

  #hosts(): Record<string, string> {
    return { [SERVER_NAME]: this.plane.address }
  }

  /** The API server is a proxy to pods; and what balancers route is spread by connection. */
  async #routeFabric(): Promise<void> {
    const { podCidrs, nodes } = this.addresses
    const routes = podCidrs.map((cidr, family) => `route replace ${cidr} via ${nodes['a']?.[family] ?? ''}`)
    await this.lab.mustRun('fabric', ['ip', '-batch', '-'], { input: routes.join('\n') })
    await this.lab.mustRun('fabric', ['sysctl', '-qw', 'net.ipv4.fib_multipath_hash_policy=1'])
  }

  async #startDns(): Promise<void> {
    const { gateway, kubeconfig } = this.plane
    const command = nodeCommand(join(packageRoot(), 'testkit/kubernetes/tools/dns.ts'))
    await this.daemons.start('fabric', [...command, '--kubeconfig', kubeconfig, '--listen', gateway], { name: 'dns' })
    await this.apply(...dnsObjects(this.addresses.dns, gateway))
  }
}

/** What is made once: folders of programs, and an archive. */
interface Built {
  readonly programs: string
  readonly runtime: string
  readonly images: string
}

async function build(): Promise<Built> {
  const programs = await kubernetesPrograms()
  return { programs, runtime: await newerRuntime(), images: await testImages(programs) }
}

function folderOf(name: string): string {
  return join(tmpdir(), `netplane-cluster-${name}`)
}

function planeOptions(lab: Lab, programs: string): ControlPlaneOptions {
  const { serviceCidrs, podCidrs, servers } = addressesOf(lab)
  const host = { name: SERVER_NAME, addresses: servers }
  return { lab, programs, folder: join(folderOf(lab.name), 'plane'), serviceCidrs, podCidrs, host }
}

function addressesOf({ topology }: Lab): ClusterAddresses {
  return clusterAddresses(familiesOf(topology.nodes.flatMap(({ addresses }) => addresses)))
}

function nodeManifest(name: string, addresses: readonly string[]): object {
  const status = { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, status }
}

interface Unready {
  readonly node: string
  readonly reason: string
}

function unreadyNode(node: unknown): Unready[] {
  const ready = listAt(node, 'status.conditions').find((condition) => textAt(condition, 'type') === 'Ready')
  if (textAt(ready, 'status') === 'True') return []
  return [{ node: textAt(node, 'metadata.name') ?? '', reason: textAt(ready, 'message') ?? 'has not said anything yet' }]
}

/** Where every cluster has its DNS; ours is outside of it, at `server`. */
function dnsObjects(clusterIP: string, server: string): object[] {
  const family = isV6(clusterIP) ? 'IPv6' : 'IPv4'
  const metadata = { namespace: 'kube-system', name: 'kube-dns' }
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  ]
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { clusterIP, ipFamilies: [family], ipFamilyPolicy: 'SingleStack', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'kube-dns' } },
      addressType: family,
      ports,
      endpoints: [{ addresses: [server] }],
    },
  ]
}
