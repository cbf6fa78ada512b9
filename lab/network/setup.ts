// SPDX-License-Identifier: Apache-2.0
/** Topology × what is there → lines for `ip -batch` in each namespace. Everything may be run again. Layer: lab
 * (pure). */
import type { LabHost, LabNode, LabPod, Topology } from './topology.ts'

/** What a namespace has now: addresses ("10.0.0.1/24") by interface. */
export type NetnsState = ReadonlyMap<string, readonly string[]>
/** Lines by namespace. */
export type Lines = ReadonlyMap<string, readonly string[]>
/** Path below /proc/sys → value. */
export type Sysctls = Readonly<Record<string, string>>

const GATEWAY = { v4: '169.254.1.1', v6: 'fe80::1' } as const
/** Marks routes that stand in for the agents' in a plain lab. */
export const PLAIN_PROTOCOL = 110

/** Every setting that a new namespace inherits from the machine and that matters here gets a value; written once,
 * before the first device, so that a repair never takes back what an agent has set since. */
export function firstSysctls(topology: Topology, netns: string): Sysctls {
  const node = topology.nodes.some((candidate) => candidate.netns === netns)
  const router = netns === topology.fabric.netns || (node && topology.plain)
  return {
    'net/ipv4/ip_forward': router ? '1' : '0',
    'net/ipv6/conf/all/forwarding': router ? '1' : '0',
    'net/ipv4/conf/all/rp_filter': '0',
    // nodes: what systemd gives every machine
    'net/ipv4/conf/default/rp_filter': node ? '2' : '0',
    // one more of systemd's: the second address of a subnet survives the first
    'net/ipv4/conf/default/promote_secondaries': '1',
    'net/ipv4/conf/all/send_redirects': '0',
    'net/ipv4/conf/default/send_redirects': '0',
    'net/ipv4/conf/default/proxy_arp': '0',
    // an address is usable at once
    'net/ipv6/conf/default/accept_dad': '0',
    'net/ipv6/conf/default/accept_ra': '0',
    'net/ipv6/conf/default/disable_ipv6': '0',
    'net/ipv6/conf/all/disable_ipv6': '0',
  }
}

/** Veths that are missing. An end without the other one in the right place is left of an old veth and goes first. */
export function vethLines(topology: Topology, state: (netns: string) => NetnsState): Lines {
  const lines = new Map<string, string[]>()
  const add = (netns: string, line: string): void => {
    lines.set(netns, [...(lines.get(netns) ?? []), line])
  }
  const fabric = topology.fabric.netns
  if (!state(fabric).has('br0')) add(fabric, `link add br0 type bridge stp_state 0 mcast_snooping 0`)
  const veth = (from: { netns: string; iface: string; ifaceMac?: string }, to: { netns: string; mac: string }): void => {
    const ends = { from: state(from.netns).has(from.iface), to: state(to.netns).has('eth0') }
    if (ends.from && ends.to) return
    if (ends.from) add(from.netns, `link del dev ${from.iface}`)
    if (ends.to) add(to.netns, 'link del dev eth0')
    const mac = from.ifaceMac === undefined ? '' : ` address ${from.ifaceMac}`
    add(from.netns, `link add ${from.iface}${mac} type veth peer name eth0 address ${to.mac} netns ${to.netns}`)
  }
  for (const host of [...topology.nodes, topology.client, topology.far]) veth({ netns: fabric, iface: host.port }, host)
  const nodes = new Map(topology.nodes.map((node) => [node.name, node.netns]))
  for (const pod of topology.pods) {
    const netns = nodes.get(pod.node)
    if (!pod.hostNetwork && netns !== undefined) veth({ netns, iface: pod.iface, ifaceMac: pod.ifaceMac }, pod)
  }
  // deletions first: the same veth may be made again from another namespace
  return new Map([...lines].sort(([, a], [, b]) => Number(b[0] === 'link del dev eth0') - Number(a[0] === 'link del dev eth0')))
}

/** Addresses, routes, link states of every namespace. */
export function settleLines(topology: Topology): Lines {
  const lines = new Map<string, readonly string[]>()
  lines.set(topology.fabric.netns, fabricLines(topology))
  for (const host of [topology.client, topology.far]) lines.set(host.netns, hostLines(host, topology.underlayMtu))
  for (const node of topology.nodes) lines.set(node.netns, nodeLines(topology, node))
  for (const pod of topology.pods) if (!pod.hostNetwork) lines.set(pod.netns, podLines(topology, pod))
  return lines
}

/** Addresses that this lab once put on an eth0 and no longer wants there; what others have added stays. */
export function staleAddressLines(
  topology: Topology,
  given: Readonly<Record<string, readonly string[]>>,
  state: (netns: string) => NetnsState,
): Lines {
  const wanted = givenAddresses(topology)
  const lines = new Map<string, readonly string[]>()
  for (const [netns, once] of Object.entries(given)) {
    const keep = new Set(wanted[netns])
    const there = state(netns).get('eth0') ?? []
    const stale = there.filter((address) => once.includes(address) && !keep.has(address))
    if (stale.length > 0)
      lines.set(
        netns,
        stale.map((address) => `addr del ${address} dev eth0`),
      )
  }
  return lines
}

/** By namespace, what its eth0 is to have. */
export function givenAddresses(topology: Topology): Record<string, readonly string[]> {
  const hosts = [...topology.nodes, topology.client, topology.far].map((host) => [host.netns, host.addresses] as const)
  const pods = topology.pods.filter((pod) => !pod.hostNetwork).map((pod) => [pod.netns, pod.addresses.map(single)] as const)
  return Object.fromEntries([...hosts, ...pods])
}

/** Pods that were and no longer are, or have moved to another node. */
export function gonePods(before: Topology | undefined, now: Topology): LabPod[] {
  const wanted = new Map(now.pods.map((pod) => [pod.key, pod]))
  return (before?.pods ?? []).filter((pod) => {
    const next = wanted.get(pod.key)
    return next === undefined || next.node !== pod.node || next.hostNetwork !== pod.hostNetwork || next.iface !== pod.iface
  })
}

function fabricLines(topology: Topology): string[] {
  const { fabric, underlayMtu, far } = topology
  const ports = [...topology.nodes, topology.client].map((host) => host.port)
  return [
    'link set lo up',
    ...ports.map((port) => `link set ${port} mtu ${underlayMtu} master br0 up`),
    `link set br0 mtu ${underlayMtu} up`,
    ...fabric.addresses.map((address) => addressLine(address, 'br0')),
    `link set ${far.port} mtu ${underlayMtu} up`,
    ...fabric.farAddresses.map((address) => addressLine(address, far.port)),
  ]
}

function hostLines(host: LabHost, mtu: number): string[] {
  return [
    'link set lo up',
    `link set eth0 mtu ${mtu} up`,
    ...host.addresses.map((address) => addressLine(address, 'eth0')),
    ...host.gateways.map((gateway) => `route replace default via ${gateway} dev eth0`),
  ]
}

function nodeLines(topology: Topology, node: LabNode): string[] {
  const own = topology.pods.filter((pod) => pod.node === node.name && !pod.hostNetwork)
  return [
    ...hostLines(node, topology.underlayMtu),
    ...own.flatMap((pod) => [
      `link set ${pod.iface} mtu ${topology.mtu} up`,
      ...pod.addresses.map((address) => `route replace ${single(address)} dev ${pod.iface}${address.includes(':') ? '' : ' scope link'}`),
    ]),
    ...(topology.plain ? plainRoutes(topology, node) : []),
  ]
}

/** In a plain lab: pods of other nodes through those nodes. */
function plainRoutes(topology: Topology, node: LabNode): string[] {
  return topology.pods.flatMap((pod) => {
    const host = topology.nodes.find((candidate) => candidate.name === pod.node)
    if (host === undefined || host === node) return []
    return pod.addresses.flatMap((address) => {
      const via = host.addresses.find((candidate) => candidate.includes(':') === address.includes(':'))?.split('/')[0]
      return via === undefined ? [] : `route replace ${single(address)} via ${via} proto ${PLAIN_PROTOCOL}`
    })
  })
}

function podLines(topology: Topology, pod: LabPod): string[] {
  const v4 = pod.addresses.some((address) => !address.includes(':'))
  const v6 = pod.addresses.some((address) => address.includes(':'))
  return [
    'link set lo up',
    `link set eth0 mtu ${topology.mtu} up`,
    ...pod.addresses.map((address) => addressLine(single(address), 'eth0')),
    // with agents, they answer for these
    ...(topology.plain
      ? [GATEWAY.v4, GATEWAY.v6].map((gateway) => `neigh replace ${gateway} lladdr ${pod.ifaceMac} dev eth0 nud permanent`)
      : []),
    ...(v4 ? [`route replace ${GATEWAY.v4} dev eth0 scope link`, `route replace default via ${GATEWAY.v4} dev eth0 onlink`] : []),
    ...(v6 ? [`route replace default via ${GATEWAY.v6} dev eth0`] : []),
  ]
}

function addressLine(address: string, device: string): string {
  return `addr replace ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`
}

function single(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`
}
