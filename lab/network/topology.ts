// SPDX-License-Identifier: Apache-2.0
/** The whole lab as plain, printable data: namespaces, addresses and veths. Layer: lab (pure). */
import { formatAddr, isV4, parseAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { LabError } from '../errors.ts'
import type { Inventory, InventoryPod, ServedPort } from './inventory.ts'
import { bridgePort, macOf, netnsName, type Target } from './names.ts'
import { countBetween, freeAddress, subnetOf, subnetsOf, withBits } from './subnets.ts'

/** A namespace with an eth0 at the underlay. */
export interface LabHost {
  readonly netns: string
  /** with the subnet's length: "10.0.0.1/24" */
  readonly addresses: readonly string[]
  /** next hops of the default routes, one a family at most */
  readonly gateways: readonly string[]
  readonly mac: string
  /** the fabric's end of its veth */
  readonly port: string
}

export interface LabNode extends LabHost {
  readonly name: string
}

export interface LabPod {
  /** "namespace/name" */
  readonly key: string
  readonly node: string
  readonly hostNetwork: boolean
  /** its own namespace, or its node's */
  readonly netns: string
  /** without a length; empty in the host network */
  readonly addresses: readonly string[]
  /** host side of its veth; empty in the host network */
  readonly iface: string
  readonly mac: string
  readonly ifaceMac: string
  readonly ports: readonly ServedPort[]
}

export interface Topology {
  readonly lab: string
  readonly nodes: readonly LabNode[]
  readonly pods: readonly LabPod[]
  /** on the nodes' own subnets */
  readonly client: LabHost
  /** in a subnet of its own, behind the fabric's router */
  readonly far: LabHost
  readonly fabric: { readonly netns: string; readonly addresses: readonly string[]; readonly farAddresses: readonly string[] }
  /** of the pods' interfaces */
  readonly mtu: number
  readonly underlayMtu: number
  /** the kernel routes between all pods by itself: for labs without agents */
  readonly plain: boolean
  readonly healthPort: number
}

export interface TopologyOptions {
  readonly lab: string
  /** the client's addresses; free ones of the nodes' first subnets when empty */
  readonly client: readonly string[]
  readonly mtu: number
  readonly underlayMtu: number
  readonly plain: boolean
}

/** Documentation prefixes (RFC 5737, RFC 3849): no node of a lab lives there. */
const FAR = { v4: '198.51.100.', v6: '2001:db8:6464::' } as const

/** Throws LabError when there is no node or a subnet is full. */
export function layOut(inventory: Inventory, options: TopologyOptions): Topology {
  if (inventory.nodes.length === 0) throw new LabError(`lab ${options.lab}`, ['no node among the manifests', ...inventory.notes].join('; '))
  const nodeAddrs = inventory.nodes.flatMap((node) => node.addrs)
  const taken = new Set(nodeAddrs)
  const clientAddrs = options.client.length > 0 ? options.client.map(parseAddr) : freeClient(nodeAddrs, taken)
  for (const addr of clientAddrs) taken.add(addr)
  const gateways = subnetsOf([...nodeAddrs, ...clientAddrs]).map((subnet) => gatewayOf(subnet, taken))
  const host = (target: Target, addrs: readonly Addr[], port: string): LabHost => ({
    ...identity(options.lab, target),
    addresses: addrs.map((addr) => withBits(addr, subnetOf(addr).bits)),
    gateways: gatewaysFor(addrs, gateways),
    port,
  })
  return {
    lab: options.lab,
    nodes: inventory.nodes.map((node) => ({
      name: node.name,
      ...host({ kind: 'node', node: node.name }, node.addrs, bridgePort('p', node.name)),
    })),
    pods: inventory.pods.map((pod) => podOf(options.lab, pod, inventory.interfacePrefix)),
    client: host({ kind: 'client' }, clientAddrs, bridgePort('c', 'client')),
    far: farHost(options.lab),
    fabric: {
      netns: netnsName(options.lab, { kind: 'fabric' }),
      addresses: gateways.map((gateway) => withBits(gateway, subnetOf(gateway).bits)),
      farAddresses: [`${FAR.v4}1/24`, `${FAR.v6}1/64`],
    },
    mtu: options.mtu,
    underlayMtu: options.underlayMtu,
    plain: options.plain,
    healthPort: inventory.healthPort,
  }
}

/** Every namespace of the lab, once. */
export function namespacesOf(topology: Topology): string[] {
  const hosts = [topology.fabric, topology.client, topology.far, ...topology.nodes, ...topology.pods]
  return [...new Set(hosts.map((host) => host.netns))]
}

/** Throws LabError when there is no such pod. */
export function podNamed(topology: Topology, key: string): LabPod {
  const pod = topology.pods.find((candidate) => candidate.key === key)
  if (pod === undefined) throw new LabError(`pod ${key}`, `not in lab ${topology.lab}`)
  return pod
}

/** Throws LabError when there is no such node. */
export function nodeNamed(topology: Topology, name: string): LabNode {
  const node = topology.nodes.find((candidate) => candidate.name === name)
  if (node === undefined) throw new LabError(`node ${name}`, `not in lab ${topology.lab}`)
  return node
}

function identity(lab: string, target: Target): { netns: string; mac: string } {
  const netns = netnsName(lab, target)
  return { netns, mac: macOf(netns, 'eth0') }
}

function podOf(lab: string, pod: InventoryPod, prefix: string): LabPod {
  const { addrs, ...rest } = pod
  const [namespace = '', name = ''] = pod.key.split('/')
  const own = identity(lab, { kind: 'pod', pod: pod.key })
  const netns = pod.hostNetwork ? netnsName(lab, { kind: 'node', node: pod.node }) : own.netns
  const addresses = addrs.map(formatAddr)
  return {
    ...rest,
    netns,
    addresses,
    iface: pod.hostNetwork ? '' : workloadInterface({ namespace, name }, prefix),
    mac: own.mac,
    ifaceMac: macOf(own.netns, 'host'),
  }
}

function freeClient(nodeAddrs: readonly Addr[], taken: ReadonlySet<Addr>): Addr[] {
  const first = [nodeAddrs.find(isV4), nodeAddrs.find((addr) => !isV4(addr))]
  return first.flatMap((addr) => (addr === undefined ? [] : requireFree(subnetOf(addr), countBetween(250, 2), taken)))
}

function gatewayOf(subnet: Cidr, taken: ReadonlySet<Addr>): Addr {
  return requireFree(subnet, [1, ...countBetween(254, 2)], taken)
}

function requireFree(subnet: Cidr, lastBytes: Iterable<number>, taken: ReadonlySet<Addr>): Addr {
  const addr = freeAddress(subnet, lastBytes, taken)
  if (addr === undefined) throw new LabError(`subnet of ${formatAddr(subnet.addr)}`, 'no free address')
  return addr
}

/** Of each family the gateway in the subnet of the first address. */
function gatewaysFor(addrs: readonly Addr[], gateways: readonly Addr[]): string[] {
  const firsts = [addrs.find(isV4), addrs.find((addr) => !isV4(addr))]
  return firsts.flatMap((addr) => {
    const gateway = addr === undefined ? undefined : gateways.find((candidate) => subnetOf(candidate).addr === subnetOf(addr).addr)
    return gateway === undefined ? [] : formatAddr(gateway)
  })
}

function farHost(lab: string): LabHost {
  return {
    ...identity(lab, { kind: 'far' }),
    addresses: [`${FAR.v4}10/24`, `${FAR.v6}10/64`],
    gateways: [`${FAR.v4}1`, `${FAR.v6}1`],
    port: bridgePort('c', 'far'),
  }
}
