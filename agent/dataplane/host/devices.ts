// SPDX-License-Identifier: Apache-2.0
/** Which interfaces get programs, and what the programs have to know of the node's interfaces.
 * Layer: agent/dataplane (pure). */
import type { Interface, InterfaceAddress, Interfaces } from '#agent/interfaces/table.ts'
import type { DesiredNode } from '#agent/compile/desired.ts'
import { SCOPE_GLOBAL } from '#agent/interfaces/netlink/addr.ts'
import { addrBits, formatAddr, isV4, type Addr, type Cidr } from '#lib/base/ip.ts'
import { isMac } from '#lib/base/mac.ts'
import { REVERSE_PATH_OF_ALL } from './sysctls.ts'
import { TUNNEL_DEVICE } from './tunnel-device.ts'
import type { RouteLookup } from './route-lookup.ts'

/** A pod's veth, or a device to the world outside this node. */
export interface Device {
  readonly kind: 'workload' | 'host'
  readonly iface: Interface
}

/** What became of an interface, and why. refused: it would have programs, were it of a kind that they can work on. */
export interface Decision {
  readonly iface: Interface
  readonly use: Device['kind'] | 'none' | 'refused'
  readonly reason: string
  /** it carries an address of the node: without it the node is of no use */
  readonly vital: boolean
}

/** Interfaces that hold service addresses of kube-proxy's IPVS mode: none of them is this node's own. */
const FOREIGN_SERVICE_DEVICE = 'kube-ipvs0'
const OUR_VETH = /^npl[0-9a-f]{11}$/
/** Kinds of links that lead to a network by themselves; undefined is hardware. Bridges and tunnels most often belong to
 * another program. */
const NETWORK_KINDS: ReadonlySet<string | undefined> = new Set([undefined, 'bond', 'team', 'veth', 'macvlan', 'ipvlan'])

/** What the kernel has. */
export interface Found {
  readonly ways: RouteLookup
  /** indexes of interfaces that have been pods' */
  readonly veths: ReadonlySet<number>
}

/** Devices to attach to, sorted by index. */
export function chosenDevices(decisions: readonly Decision[]): Device[] {
  return decisions.flatMap(({ iface, use }) => (use === 'workload' || use === 'host' ? [{ kind: use, iface }] : []))
}

/** One for each interface, sorted by index. A pod's veth never counts as a host device, even if its name or address
 * fits. Programs are on it as long as it is there: before its pod is known and after it is forgotten its address
 * has no row, and they let nothing pass. */
export function decideDevices(node: Pick<DesiredNode, 'workloads' | 'host'>, interfaces: Interfaces, { ways, veths }: Found): Decision[] {
  const pods = new Map(node.workloads.map(({ iface, pod }) => [iface, pod]))
  const asked = { interfaces, excluded: new RegExp(node.host.excluded), why: reasonsToChoose(node, { interfaces, ways }) }
  return interfaces.all().map((iface) => {
    const pod = pods.get(iface.name)
    const forgotten: Decision = { iface, use: 'workload', reason: 'of no pod that we know', vital: false }
    if (pod !== undefined) return { ...forgotten, reason: `pod ${pod}` }
    if (OUR_VETH.test(iface.name)) return forgotten
    const decision = decideHost(iface, asked)
    return veths.has(iface.index) && !decision.vital ? forgotten : decision
  })
}

interface Asked {
  readonly excluded: RegExp
  readonly interfaces: Interfaces
  readonly why: (iface: Interface) => { readonly reason: string | undefined; readonly vital: boolean }
}

function decideHost(iface: Interface, { interfaces, excluded, why }: Asked): Decision {
  const none = (reason: string): Decision => ({ iface, use: 'none', reason, vital: false })
  if (iface.loopback) return none('loopback')
  if (iface.name === TUNNEL_DEVICE) return none("ours: announces the tunnel's port")
  if (excluded.test(iface.name)) return none('named by interfaceExclude')
  const { reason, vital } = why(iface)
  if (reason === undefined) return none('leads to no network by itself')
  const master = interfaces.all().find(({ index }) => index === iface.master)
  if (master !== undefined && master.kind !== 'vrf') return none(`part of ${master.name}`)
  if (iface.kind === 'vlan') return { iface, use: 'refused', reason: `tagged VLAN: not supported (${reason})`, vital }
  if (!isMac(iface.mac)) return { iface, use: 'refused', reason: `not Ethernet: not supported (${reason})`, vital }
  return { iface, use: 'host', reason, vital }
}

/** Why programs are to see what the interface carries; undefined: they are not. */
function reasonsToChoose(
  { host, workloads }: Pick<DesiredNode, 'workloads' | 'host'>,
  { interfaces, ways }: { readonly interfaces: Interfaces; readonly ways: RouteLookup },
): Asked['why'] {
  const addresses = new Set<Addr>(host.addresses)
  const pattern = host.pattern === undefined ? undefined : new RegExp(host.pattern)
  const elsewhere = new Set(host.elsewhere)
  const pods = new Set(host.elsewhere.flatMap((addr) => ways.hops.get(addr)?.device ?? []))
  for (const { iface } of workloads) pods.delete(interfaces.byName(iface)?.master ?? 0)
  const nodes = new Map([...ways.hops].flatMap(([addr, { device }]) => (elsewhere.has(addr) ? [] : [[device, addr] as const])))
  const other = (iface: Interface): string | undefined => {
    if (ways.defaults.includes(iface.index)) return 'a default route leaves by it'
    const node = nodes.get(iface.index)
    if (node !== undefined) return `the way to node ${formatAddr(node)}`
    if (pods.has(iface.index)) return "the way to other nodes' pods"
    if (pattern?.test(iface.name) === true) return 'matches bpfDataIfacePattern'
    const network = iface.addresses.find(isNetwork)
    return network !== undefined && NETWORK_KINDS.has(iface.kind)
      ? `has the network of ${formatAddr(network.addr)}/${network.bits}`
      : undefined
  }
  return (iface) => {
    const own = iface.addresses.find(({ addr }) => addresses.has(addr))
    const reason = own === undefined ? other(iface) : `has the node's address ${formatAddr(own.addr)}`
    return { reason, vital: own !== undefined }
  }
}

/** True for an address with neighbours, which may reach the node's services here. */
function isNetwork({ addr, bits, scope }: InterfaceAddress): boolean {
  return scope === SCOPE_GLOBAL && bits < addrBits(addr) && !isLocalOnly(addr)
}

/** Settings of devices with programs, and of the loopback device. Translated packets that the kernel is to route on
 * may have a source of the node's own, also on the loopback device, where those go that a process of the node sent
 * to a service and another of its processes is to have. Reverse path filtering is off on pods' veths: such a device
 * has no address, so that even loose filtering refuses what comes from a service's address, as answers to the
 * node's own processes do. So it is off for all as a whole, see Sysctls; that of host devices is their
 * administrator's. */
export function deviceSysctls(devices: readonly Device[], interfaces: Interfaces): Record<string, string> {
  const settings: Record<string, string> = {}
  const set = (iface: Interface, name: string, value: string): void => {
    settings[`net/ipv4/conf/${iface.name}/${name}`] = value
  }
  const bridges = new Map<number, Interface>()
  for (const iface of interfaces.all()) {
    if (iface.loopback) set(iface, 'accept_local', '1')
    if (iface.kind === 'bridge') bridges.set(iface.index, iface)
  }
  for (const { kind, iface } of devices) {
    // what comes in by its port comes in by the bridge
    const entrance = bridges.get(iface.master) ?? iface
    set(entrance, 'accept_local', '1')
    if (kind !== 'workload') continue
    set(entrance, 'rp_filter', '0')
    settings[REVERSE_PATH_OF_ALL] = '0'
  }
  return settings
}

/** Every address the node answers on: those that its kernel takes for the node itself, and those of devices of a VRF,
 * which has such a table of its own. Not those of loopback and of IPv6 links, which programs know by themselves. Sorted
 * and distinct. */
export function selfAddresses(interfaces: Interfaces): Addr[] {
  const found = new Set<Addr>()
  const foreign = new Set(interfaces.byName(FOREIGN_SERVICE_DEVICE)?.addresses.map(({ addr }) => addr))
  for (const { addr, bits } of interfaces.local()) if (bits === addrBits(addr) && !isKnownByForm(addr)) found.add(addr)
  for (const { up, addresses } of interfaces.all()) {
    if (!up) continue
    for (const { addr, scope } of addresses) if (scope === SCOPE_GLOBAL && !isLocalOnly(addr)) found.add(addr)
  }
  return [...found].filter((addr) => !foreign.has(addr)).sort()
}

/** Prefixes that the kernel takes for the node itself as a whole, as after `ip route add local 10.9.0.0/24 dev lo`: not
 * loopback's, and no single addresses. */
export function selfPrefixes(interfaces: Interfaces): Cidr[] {
  return interfaces.local().filter(({ addr, bits }) => bits < addrBits(addr) && !isKnownByForm(addr))
}

/** Loopback's, and IPv6's link-local. */
function isKnownByForm(addr: Addr): boolean {
  return isV4(addr) ? addr.charCodeAt(12) === 127 : isLocalOnly(addr)
}

/** Loopback and link-local addresses, whatever scope they were given. */
function isLocalOnly(addr: Addr): boolean {
  const at = isV4(addr) ? 12 : 0
  const [first, second] = [addr.charCodeAt(at), addr.charCodeAt(at + 1)]
  if (isV4(addr)) return first === 127 || (first === 169 && second === 254)
  return (first === 0xfe && (second & 0xc0) === 0x80) || /^\0{15}\x01$/.test(addr)
}
