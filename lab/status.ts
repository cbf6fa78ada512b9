// SPDX-License-Identifier: Apache-2.0
/** What a lab consists of and how it is, for people and for programs. Layer: lab. */
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { Agents } from './processes/agents.ts'
import { netnsExists } from './network/netns.ts'
import { holderInPlace } from './processes/place-holders.ts'
import { listeningServer } from './processes/servers.ts'
import type { LabState } from './state.ts'

export interface NodeStatus {
  readonly name: string
  readonly netns: string
  readonly addresses: readonly string[]
  /** its root process, in the node's namespace as it is now; undefined: it needs `up` */
  readonly holder: number | undefined
  readonly agent: { readonly pid: number; readonly ready: boolean; readonly text: string } | undefined
}

export interface PodStatus {
  readonly key: string
  readonly node: string
  /** its own namespace, or its node's */
  readonly netns: string
  readonly addresses: readonly string[]
  /** host side of its veth; empty in the host network */
  readonly iface: string
  /** process id of its echo server, once that listens in the pod's namespace as it is now */
  readonly server: number | undefined
}

export interface LabStatus {
  readonly name: string
  readonly resources: string
  /** every namespace and node root is there, every agent that should run is ready, every server that should answer
   * listens */
  readonly ok: boolean
  readonly nodes: readonly NodeStatus[]
  readonly pods: readonly PodStatus[]
  readonly client: readonly string[]
  readonly far: readonly string[]
}

export async function statusOf(state: LabState): Promise<LabStatus> {
  const { topology, options } = state
  const agents = new Agents(topology, options)
  const nodes = await mapLimited(topology.nodes, 4, async (node): Promise<NodeStatus> => {
    const holder = holderInPlace(topology.lab, node)
    const pid = holder === undefined ? undefined : agents.pid(node.name)
    const agent = pid === undefined ? undefined : { pid, ...(await agents.readiness(node.name)) }
    return { name: node.name, netns: node.netns, addresses: node.addresses, holder, agent }
  })
  const pods = topology.pods.map((pod): PodStatus => ({
    key: pod.key,
    node: pod.node,
    netns: pod.netns,
    addresses: pod.addresses,
    iface: pod.iface,
    server: listeningServer(topology.lab, pod),
  }))
  const serving = topology.pods.filter((pod) => options.servers && pod.ports.length > 0).map((pod) => pod.key)
  const whole =
    state.netns.every(netnsExists) &&
    nodes.every((node) => node.holder !== undefined && (!options.agents || node.agent?.ready === true)) &&
    pods.every((pod) => pod.server !== undefined || !serving.includes(pod.key))
  return {
    name: topology.lab,
    resources: options.resources,
    ok: whole,
    nodes,
    pods,
    client: topology.client.addresses,
    far: topology.far.addresses,
  }
}
