// SPDX-License-Identifier: Apache-2.0
/** One lab a contender, all with the same cluster: built, given its rules, and with the traffic tool in place.
 * Layer: bench. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Lab } from '../../lab/lab.ts'
import { podNamed } from '../../lab/network/topology.ts'
import { ADDRESSES, CLIENT_POD, FAR_POD, NEAR_POD, OTHER_NODE, PORT } from './manifests.ts'
import type { Contender, Setting } from './result.ts'
import { KERNEL_VXLAN, VXLAN_BYTES } from './kernel-vxlan.ts'
import { Traffic } from './traffic.ts'

/** Thousands of connections a second close first at the client: it may use their ports again a second later. (Were
 * it the server, a port that comes back by another way, service or direct, would meet a TIME_WAIT with timestamps
 * of that other way, and lose its SYN.) */
const REUSE_PORTS = 'echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse; echo 1024 65000 > /proc/sys/net/ipv4/ip_local_port_range'

/** Whatever the machine's own choice: BBR's streams go at a pace that it feels for by timers, and differ by the
 * half. */
const NO_PACE = 'echo reno > /proc/sys/net/ipv4/tcp_congestion_control'

/** Where a path begins. Programs outside the node's cgroup have no connect-time load balancing: their packets are
 * translated. */
export type Start = 'pod' | 'pod-outside-cgroup' | 'client'

export interface ContenderLabOptions {
  readonly contender: Contender
  readonly setting: Setting
  readonly resources: string
  /** path of the traffic tool */
  readonly tool: string
  /** puts services into place in a lab that has none by itself */
  readonly serve?: (lab: Lab) => Promise<void>
}

export class ContenderLab implements AsyncDisposable {
  readonly contender: Contender
  readonly #lab: Lab
  readonly #tool: string
  readonly #starts = new Map<Start, Traffic>()
  readonly #children: ChildProcess[] = []

  private constructor(contender: Contender, lab: Lab, tool: string) {
    this.contender = contender
    this.#lab = lab
    this.#tool = tool
  }

  /** Takes down what is left of an earlier one. */
  static async build(options: ContenderLabOptions): Promise<ContenderLab> {
    const name = `bench${options.contender}`
    await Lab.remove(name)
    const lab = await Lab.up({ name, resources: options.resources, plain: options.contender !== 'netplane', servers: false })
    const arena = new ContenderLab(options.contender, lab, options.tool)
    await arena.#setUp(options.setting)
    await options.serve?.(lab)
    return arena
  }

  /** The tool there; started when first asked for. */
  from(start: Start): Traffic {
    const known = this.#starts.get(start)
    if (known !== undefined) return known
    const traffic = new Traffic(this.#spawn(start), `${this.contender} from ${start}`)
    this.#starts.set(start, traffic)
    return traffic
  }

  /** From now on packets between the nodes are of this size at most, and the nodes merge those that come (GRO): what
   * network cards do. The fabric cuts them as they leave it for a node. */
  async putOnWire(mtu: number): Promise<void> {
    const { nodes, client, pods } = this.#lab.topology
    const wide = ['br0', client.port, ...nodes.map(({ port }) => port)].map((port) => `ip link set ${port} mtu ${mtu}`)
    const cut = nodes.map(({ port }) => `ethtool -K ${port} tso off`)
    await this.#lab.mustRun('fabric', ['sh', '-ec', [...wide.toReversed(), ...cut].join('\n')])
    // what was learnt of the path is of another size
    const end = ['sh', '-ec', `ip link set eth0 mtu ${mtu}; ip route flush cache`]
    await this.#lab.mustRun('client', end)
    for (const { name } of nodes) {
      const ifaces = pods.filter(({ node }) => node === name).map(({ iface }) => `ip link set ${iface} mtu ${mtu}`)
      const tunnel = `if ip link show ${KERNEL_VXLAN} 2>/dev/null; then ip link set ${KERNEL_VXLAN} mtu ${mtu - VXLAN_BYTES}; fi`
      await this.#lab.mustRun(`node/${name}`, [
        'sh',
        '-ec',
        [`ip link set eth0 mtu ${mtu}; ethtool -K eth0 gro on`, ...ifaces, tunnel].join('\n'),
      ])
    }
    for (const { key } of pods) await this.#lab.mustRun(key, end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const traffic of this.#starts.values()) traffic.close()
    for (const child of this.#children) child.kill()
    await this.#lab.down()
  }

  async #setUp(setting: Setting): Promise<void> {
    for (const pod of [NEAR_POD, FAR_POD]) {
      await this.#lab.mustRun(pod, ['sh', '-c', NO_PACE])
      const server = this.#lab.spawn(pod, [this.#tool, 'serve', String(PORT)], ['ignore', 'pipe', 'inherit'])
      this.#children.push(server)
      if (server.stdout !== null) await once(server.stdout, 'data')
    }
    for (const place of [CLIENT_POD, 'client']) await this.#lab.mustRun(place, ['sh', '-c', `${REUSE_PORTS}; ${NO_PACE}`])
    if (this.contender === 'plain') await this.#sameHops(setting)
  }

  /** A node port's packets go through the entry node, there and, unless the other node answers, back: so do plain
   * ones to the pod itself. */
  async #sameHops(setting: Setting): Promise<void> {
    const client = this.#lab.topology.client.addresses[0]?.split('/')[0] ?? ''
    for (const pod of [ADDRESSES.near, ADDRESSES.far])
      await this.#lab.mustRun('client', ['ip', 'route', 'replace', pod, 'via', ADDRESSES.entryNode])
    if (setting !== 'dsr') await this.#lab.mustRun(`node/${OTHER_NODE}`, ['ip', 'route', 'replace', client, 'via', ADDRESSES.entryNode])
  }

  #spawn(start: Start): ChildProcess {
    const command = [this.#tool, 'drive']
    const stdio: ['pipe', 'pipe', 'inherit'] = ['pipe', 'pipe', 'inherit']
    if (start !== 'pod-outside-cgroup') return this.#lab.spawn(start === 'pod' ? CLIENT_POD : 'client', command, stdio)
    return spawn('nsenter', [`--net=/run/netns/${podNamed(this.#lab.topology, CLIENT_POD).netns}`, ...command], { stdio })
  }
}
